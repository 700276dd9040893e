from __future__ import annotations

import pytest
from google.adk.telemetry.context import TelemetryConfig

from adk_stream_protocol.engine.unary_run import unary_config

ASKED = [
    "should_use_experimental_genai_semconv",
    "resolved_content_capturing_mode",
    "should_add_content_to_logs",
    "should_add_content_to_experimental_spans",
    "should_emit_experimental_telemetry",
]


@pytest.mark.parametrize("question", ASKED)
def test_adk_is_answered_as_its_own_settings_would_when_nobody_hears(question: str) -> None:
    ours = unary_config(max_llm_calls=1, tool_threads=1).telemetry
    assert ours is not None
    own = TelemetryConfig.model_validate(ours.model_dump())
    assert getattr(ours, question) == getattr(own, question)


def test_what_a_run_changes_of_its_own_is_not_anothers() -> None:
    one, other = (unary_config(max_llm_calls=3, tool_threads=2, stamp={"a": n}) for n in (1, 2))
    assert one.max_llm_calls == other.max_llm_calls == 3
    assert (one.custom_metadata, other.custom_metadata) == ({"a": 1}, {"a": 2})
    one.max_llm_calls = 9
    assert one.tool_thread_pool_config is not None
    one.tool_thread_pool_config.max_workers = 9
    assert other.max_llm_calls == 3
    assert other.tool_thread_pool_config is not None
    assert other.tool_thread_pool_config.max_workers == 2
