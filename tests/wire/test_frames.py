"""Frames are values."""

from __future__ import annotations

import dataclasses
from typing import get_args

import pytest

from adk_stream_protocol.identifiers import RequestId
from adk_stream_protocol.wire.frames import (
    NOBODY,
    UNNUMBERED,
    Abort,
    ChatFrame,
    EnvelopeFrame,
    ServerFrame,
)


@pytest.mark.parametrize("kind", [*get_args(ChatFrame | EnvelopeFrame), *get_args(ServerFrame)])
def test_a_frame_cannot_be_changed(kind: type) -> None:
    assert dataclasses.is_dataclass(kind)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]  # every dataclass has it


def test_no_request_of_a_client_is_nobodys() -> None:
    assert len({NOBODY, UNNUMBERED, RequestId("r1")}) == 3
    assert Abort(RequestId("r1")) == Abort(RequestId("r1"))
