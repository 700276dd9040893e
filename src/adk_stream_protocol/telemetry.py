"""What an operator sees of a server beside its logs: spans and counters.

Spans go to whatever OpenTelemetry the process has set up, and nowhere if it has none. Both carry
ids and names only; message text, arguments and the messages of exceptions are never given to them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final, Literal, ParamSpec, TypeAlias, TypeVar

from opentelemetry import _logs, trace

__all__ = [
    "CounterName",
    "Meters",
    "Span",
    "SpanName",
    "begin_span",
    "is_heard",
    "note",
    "span",
    "span_ids",
    "spanned",
]

P = ParamSpec("P")
T = TypeVar("T")

SpanName: TypeAlias = Literal[
    "adk_stream.turn", "adk_stream.hold", "adk_stream.decision", "adk_stream.tool"
]
CounterName: TypeAlias = Literal["turns", "replies", "calls_held", "decisions", "answers_refused"]

_SERIES: Final = 200
"""How many label sets one counter keeps apart: who adds tools without end must not fill memory."""
_REST: Final = "other"


@dataclass(frozen=True, slots=True)
class Span:
    """Something that takes time, as OpenTelemetry sees it."""

    _span: trace.Span

    def note(self, **attributes: str) -> None:
        """Add what is known by now; `outcome` becomes the attribute `adk_stream.outcome`."""
        for name, value in attributes.items():
            self._span.set_attribute(f"adk_stream.{name}", value)

    def fail(self, error: BaseException) -> None:
        """Mark it as failed; of the exception its type is told, not its message."""
        self._span.set_status(trace.StatusCode.ERROR, type(error).__name__)

    def end(self) -> None:
        """End it; needed for a span that `begin_span` began."""
        self._span.end()


def begin_span(name: SpanName, **attributes: str) -> Span:
    """Begin a span that ends elsewhere; it is nobody's parent."""
    begun = Span(_tracer().start_span(name))
    begun.note(**attributes)
    return begun


@contextmanager
def span(name: SpanName, **attributes: str) -> Iterator[Span]:
    """Make a span of a block; spans that begin inside it, ADK's among them, are its children."""
    begun = begin_span(name, **attributes)
    # OpenTelemetry's own way would record the exception, message and all.
    with trace.use_span(begun._span, record_exception=False, set_status_on_exception=False):
        try:
            yield begun
        except BaseException as error:
            begun.fail(error)
            raise
        finally:
            begun.end()


def spanned(
    name: SpanName,
) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Coroutine[Any, Any, T]]]:
    """Make a span of each call of a function, which says more about it with `note`."""

    def decorate(do: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        @wraps(do)
        async def doing(*args: P.args, **kwargs: P.kwargs) -> T:
            with span(name):
                return await do(*args, **kwargs)

        return doing

    return decorate


def note(**attributes: str) -> None:
    """Add what is known to the current span."""
    Span(trace.get_current_span()).note(**attributes)


def is_heard() -> bool:
    """Whether anyone gets what is told to OpenTelemetry in the current span."""
    # A provider of the interface itself is there for whoever has none.
    provider = type(_logs.get_logger_provider()).__module__
    logs = provider != _logs.__name__ and not provider.startswith(f"{_logs.__name__}.")
    return logs or trace.get_current_span().is_recording()


def span_ids() -> Mapping[str, str]:
    """Return the ids of the current trace and span, for a log line; empty if there is none."""
    context = trace.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {
        "trace_id": trace.format_trace_id(context.trace_id),
        "span_id": trace.format_span_id(context.span_id),
    }


def _tracer() -> trace.Tracer:
    # Asked for each time: a process may set up its OpenTelemetry after this module was imported.
    return trace.get_tracer("adk_stream_protocol")


@dataclass(slots=True)
class Meters:
    """What happened in this process since it started."""

    counts: dict[CounterName, dict[tuple[str, ...], int]] = field(default_factory=dict)
    """By counter and the values of its labels, in the order in which they are given."""
    open_streams: int = 0
    """How many replies are being sent right now."""

    def count(self, name: CounterName, *labels: str) -> None:
        """Count one more."""
        series = self.counts.setdefault(name, {})
        if labels not in series and len(series) >= _SERIES:
            labels = tuple(_REST for _ in labels)
        series[labels] = series.get(labels, 0) + 1

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Count a stream as open until the block ends."""
        self.open_streams += 1
        try:
            yield
        finally:
            self.open_streams -= 1
