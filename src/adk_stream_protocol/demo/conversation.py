"""What a live connection remembers: what the user said, and what it led to.

In a live run a result may come after the user went on to something else. So each message has a
thread of its own, and a thread whose results have come is taken up again where it was left.
"""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from google.genai import types

__all__ = ["Conversation"]

_Thread = list[types.Content]


@dataclass
class _Step:
    """Calls made at once, and the results that have come."""

    thread: _Thread
    call_ids: list[str]
    results: types.Content = field(default_factory=lambda: types.Content(role="user", parts=[]))

    def settle(self, response: types.FunctionResponse) -> None:
        """Keep a result, in place of an earlier one of the same call, in the order of the calls."""
        results = [part.function_response for part in self.results.parts or []]
        found = {result.id: result for result in [*results, response] if result is not None}
        self.results.parts = [
            types.Part(function_response=found[call_id])
            for call_id in self.call_ids
            if call_id in found
        ]

    @property
    def is_settled(self) -> bool:
        """Whether all calls have their results."""
        return len(self.results.parts or ()) == len(self.call_ids)


class Conversation:
    """The contents so far, in an order in which the message to answer is the last one."""

    def __init__(self) -> None:
        self._threads: list[_Thread] = []  # the one that is spoken about comes last
        self._steps: dict[str, _Step] = {}  # by the ids of their calls
        self.newest_calls: Sequence[str] = ()  # their ids; none until one is made

    @property
    def contents(self) -> list[types.Content]:
        """All that was said, as a unary request would hold it."""
        return list(chain.from_iterable(self._threads))

    def begin(self, *contents: types.Content) -> None:
        """Begin a thread with the history or with a message of the user."""
        self._threads.append(list(contents))

    def say(self, content: types.Content) -> None:
        """Keep what the model said."""
        self._threads[-1].append(content)

    def call(self, calls: Iterable[types.FunctionCall]) -> types.Content:
        """Keep the calls of one step, and return them with ids.

        Gemini, too, gives ids in live runs; by them a late result finds its call.
        """
        named = [call.model_copy(update={"id": f"offline-{uuid.uuid4()}"}) for call in calls]
        parts = [types.Part(function_call=call) for call in named]
        content = types.Content(role="model", parts=parts)
        step = _Step(self._threads[-1], [call.id or "" for call in named])
        step.thread += [content, step.results]
        self.newest_calls = step.call_ids
        self._steps.update(dict.fromkeys(step.call_ids, step))
        return content

    def settle(self, responses: Sequence[types.FunctionResponse]) -> bool:
        """Keep results and return to their thread; return whether one has all it waited for.

        A result of a call that was not made here is nobody's and is left out.
        """
        settled = False
        for response in responses:
            step = self._steps.get(response.id or "")
            if step is None:
                continue
            step.settle(response)
            if step.is_settled:
                self._return_to(step.thread)
                settled = True
        return settled

    def _return_to(self, thread: _Thread) -> None:
        # By identity: the same message twice makes two equal threads.
        self._threads = [other for other in self._threads if other is not thread]
        self._threads.append(thread)
