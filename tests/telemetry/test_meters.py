from __future__ import annotations

from adk_stream_protocol.telemetry import Meters


def test_each_set_of_labels_is_counted_by_itself() -> None:
    meters = Meters()
    for verdict in ("approved", "denied", "approved"):
        meters.count("decisions", verdict, "accepted")
    assert meters.counts == {
        "decisions": {("approved", "accepted"): 2, ("denied", "accepted"): 1},
    }


def test_names_without_end_are_counted_together() -> None:
    meters = Meters()
    for number in range(300):
        meters.count("calls_held", f"tool-{number}")
    meters.count("calls_held", "tool-0")
    held = meters.counts["calls_held"]
    assert len(held) == 201
    assert (held[("tool-0",)], held[("other",)]) == (2, 100)
    assert sum(held.values()) == 301


def test_a_stream_is_open_until_its_block_ends() -> None:
    meters = Meters()
    with meters.sending(), meters.sending():
        assert meters.open_streams == 2
    assert meters.open_streams == 0
