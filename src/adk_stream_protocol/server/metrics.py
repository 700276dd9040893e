"""`GET /metrics`: what an operator watches, in the text format that Prometheus reads (0.0.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from adk_stream_protocol.engine.chat_turns import ChatTurns
from adk_stream_protocol.errors import NotFound
from adk_stream_protocol.server.faults import FaultRoute
from adk_stream_protocol.server.guard import check_origin
from adk_stream_protocol.server.openapi import error_responses
from adk_stream_protocol.server.probes import Probe
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.telemetry import CounterName, Meters

__all__ = ["Readings", "metrics_routes"]

_KIND: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class _Counter:
    help: str
    labels: Mapping[str, tuple[str, ...]]
    """Each label's values as far as they are known ahead; those are shown from the start."""


_COUNTERS: Final[Mapping[CounterName, _Counter]] = {
    "turns": _Counter(
        "Turns that ended in this process, by how.",
        {"outcome": ("done", "failed", "stopped", "handed_over", "not_prepared")},
    ),
    "replies": _Counter(
        "Replies sent by this process, to the end or until the reader left.",
        {"profile": ("ai-sdk", "adk"), "end": ("complete", "left")},
    ),
    "calls_held": _Counter("Tool calls that this process held, by tool.", {"tool": ()}),
    "decisions": _Counter(
        "Answers to held calls that this process took, by what they said and whether they counted.",
        {
            "verdict": ("approved", "denied", "output"),
            "ruling": ("accepted", "repeat", "conflict"),
        },
    ),
    "answers_refused": _Counter(
        "Answers to held calls that came too late or contradicted the real state.", {}
    ),
}


@dataclass(frozen=True, slots=True)
class Readings:
    """Everything that is shown, and where it comes from."""

    meters: Meters
    turns: ChatTurns
    live_runs: Callable[[], int]
    """How many live runs this process has."""
    pending: Probe[int]
    """How many approvals wait, in the whole database."""

    async def text(self) -> str:
        """Return the metrics; those that the database does not tell soon are left out."""
        return "".join(f"{line}\n" for line in self._lines(await self.pending.answer()))

    def _lines(self, pending: int | None) -> Iterator[str]:
        build = {"version": version("adk-stream-protocol")}
        yield from _family("build_info", "gauge", "The version that runs.", [(build, 1)])
        if pending is not None:
            about = "Approvals that wait for a decision, in the whole database."
            yield from _family("pending_approvals", "gauge", about, [({}, pending)])
        about = "Turns that run in this process."
        yield from _family("running_turns", "gauge", about, [({}, self.turns.running)])
        about = "Live runs of this process, those that wait included."
        yield from _family("live_runs", "gauge", about, [({}, self.live_runs())])
        about = "Replies that this process is sending."
        yield from _family("open_streams", "gauge", about, [({}, self.meters.open_streams)])
        for name, counter in _COUNTERS.items():
            counts = dict.fromkeys(product(*counter.labels.values()), 0)
            counts.update(self.meters.counts.get(name, {}))
            samples = [
                (dict(zip(counter.labels, values, strict=True)), count)
                for values, count in counts.items()
            ]
            yield from _family(f"{name}_total", "counter", counter.help, samples)


def _family(
    name: str, kind: str, about: str, samples: Iterable[tuple[Mapping[str, str], int]]
) -> Iterator[str]:
    full = f"adk_stream_{name}"
    yield f"# HELP {full} {about}"
    yield f"# TYPE {full} {kind}"
    for labels, value in samples:
        shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{full}{{{shown}}} {value}" if shown else f"{full} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def metrics_routes(readings: Readings, settings: Settings) -> APIRouter:
    """Return the route that a scraper reads; a 404 unless the settings allow it."""
    router = APIRouter(tags=["health"], route_class=FaultRoute)

    @router.get(
        "/metrics",
        name="getMetrics",
        summary="Counters and gauges for Prometheus",
        response_class=Response,
        responses={
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
            **error_responses(403, 404),
        },
    )
    async def metrics(request: Request) -> Response:
        # Neither texts nor users are in it, but how much is going on is nobody's business either:
        # it is kept from other sites and host names, as everything is.
        check_origin(request, settings)
        if not settings.metrics:
            raise NotFound("This server shows no metrics.", code="no_metrics")
        return Response(await readings.text(), headers={"content-type": _KIND})

    return router
