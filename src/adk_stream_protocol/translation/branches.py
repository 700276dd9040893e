"""Where in a chat a message is answered, and what is taken back for it.

Pure: a request and the turns that the session holds go in, a `Branch` comes out. ADK rewinds to
before an invocation, so what is taken back always begins with a whole turn; a user message that
stays though its answer goes is stored again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from google.genai import types

from adk_stream_protocol.errors import BadRequest, Conflict, NotFound
from adk_stream_protocol.identifiers import MessageId
from adk_stream_protocol.translation.contents import has_words, said_text
from adk_stream_protocol.translation.history import PastTurn, steering_in
from adk_stream_protocol.translation.instructions import Regenerate, Say
from adk_stream_protocol.wire.messages import UIMessage
from adk_stream_protocol.wire.requests import BEGINNING

__all__ = ["Branch", "is_same", "regenerated", "said_at"]


@dataclass(frozen=True, slots=True)
class Branch:
    """A user's message to answer, and the place in the chat where it stands."""

    content: types.Content
    user_message: MessageId
    taken_back: Sequence[PastTurn] = ()
    """The turns that are taken back first, oldest first."""
    keeps: PastTurn | None = None
    """The first of them, if its user message stays without its answer; None: it goes, too."""
    is_new: bool = True
    """False: the content is that of the first turn that is taken back."""


def said_at(
    said: Say,
    content: types.Content,
    turns: Sequence[PastTurn],
    *,
    has_failed: Callable[[PastTurn], bool],
) -> Branch:
    """Return where a user's message stands that is sent, perhaps again or in another wording.

    Args:
        said: the message, and what its request names.
        content: the message as ADK takes it.
        turns: all of the chat, oldest first.
        has_failed: whether a turn has no answer that is worth keeping.

    Raises:
        Conflict: it was sent and answered before, and nothing says that another answer is wanted.
        BadRequest: the request continues another message, which is not in it.
        NotFound: `parentId` names no message of the chat.
    """
    at = _position(turns, said.parent_id)
    branch = Branch(content, MessageId(said.message.id), turns[at.index :], at.keeps)
    known = _index_of_user_message(turns, branch.user_message)
    if known is None:
        return branch
    if _is_restated(said, content, turns[known]) and at.index in {known, len(turns)}:
        _check_named(said, turns)
        is_last = known == len(turns) - 1
        # A bare message that was not answered yet was given its reply, and does not come here.
        if not is_last or not (said.is_bare or has_failed(turns[known])):
            raise Conflict(
                "This message was sent and answered before. To have another answer, and to take "
                'back what followed, send it with "trigger": "regenerate-message". Give a new '
                "message a new id.",
                code="message_exists",
            )
    return _not_after(branch, turns, known)


def regenerated(
    asked: Regenerate, turns: Sequence[PastTurn], *, read: Callable[[UIMessage], types.Content]
) -> Branch:
    """Return which message is answered again: the one named, else the client's last, else the last.

    Args:
        asked: what the request names, and the client's last user message.
        turns: all of the chat, oldest first.
        read: makes of that message what ADK takes, if it is needed.

    Raises:
        BadRequest: there is no such message.
        ClientFault: the client's message is needed, and cannot be read.
        NotFound: `parentId` names no message of the chat.
    """
    at = _position(turns, asked.parent_id)
    target = _target(asked, turns, at)
    if target is None:
        return _never_seen(asked, turns, at, read=read)
    turn = turns[target]
    if asked.message is not None and _is_reworded(asked.message, turn):
        edited = Branch(read(asked.message), turn.user_message_id, turns[at.index :], at.keeps)
        return _not_after(edited, turns, target)
    if turn.said is None:
        return _never_seen(asked, turns, at, read=read)
    again = Branch(turn.said, turn.user_message_id, turns[at.index :], at.keeps)
    again = _not_after(again, turns, target)
    return dataclasses.replace(again, is_new=again.taken_back[0] is not turn)


def is_same(content: types.Content, said: types.Content | None) -> bool:
    """Whether two messages say the same, however their text is cut into parts."""
    return said is not None and _gist(content) == _gist(said)


def _is_reworded(message: UIMessage, turn: PastTurn) -> bool:
    """Whether a client has put another text under the id of a turn's message.

    Only text counts: clients leave out the files of earlier messages, or keep them elsewhere.
    """
    text = said_text(message)
    if message.id != turn.user_message_id or not text:
        return False
    return turn.said is None or text != _gist(turn.said)[0]


def _gist(content: types.Content) -> tuple[str, list[tuple[str | None, bytes | None]]]:
    parts = content.parts or []
    files = [part.inline_data for part in parts if part.inline_data is not None]
    return "".join(part.text or "" for part in parts), [
        (file.mime_type, file.data) for file in files
    ]


@dataclass(frozen=True, slots=True)
class _Position:
    """A place between turns."""

    index: int
    """Of the first turn after it."""
    keeps: PastTurn | None = None
    """The turn at the index, if the place is between its user message and its answer."""


def _position(turns: Sequence[PastTurn], parent_id: MessageId | None) -> _Position:
    """Return the place just after a message."""
    if parent_id is None:
        return _Position(len(turns))
    if parent_id == BEGINNING:
        return _Position(0)
    index = _index_of(turns, parent_id)
    if index is None:
        index = _index_of_steered(turns, parent_id)
    if index is None:
        raise NotFound(
            '"parentId" names no message of this chat. Load the chat and send the id of one of its '
            "messages, null for its beginning, or leave it out to go on after the last.",
            code="unknown_message",
        )
    turn = turns[index]
    if parent_id == turn.user_message_id and _is_answered(turn):
        return _Position(index, turn)
    return _Position(index + 1)


def _index_of(turns: Sequence[PastTurn], message_id: MessageId) -> int | None:
    """Return which turn has a message, the user's or the assistant's."""
    for index, turn in enumerate(turns):
        if message_id in {turn.message_id, turn.user_message_id}:
            return index
    return None


def _index_of_steered(turns: Sequence[PastTurn], message_id: MessageId) -> int | None:
    """Return which turn a message was sent into while it ran: its answer is that turn's."""
    for index, turn in enumerate(turns):
        if message_id in steering_in(turn.events):
            return index
    return None


def _index_of_user_message(turns: Sequence[PastTurn], message_id: MessageId) -> int | None:
    for index, turn in enumerate(turns):
        if message_id and turn.user_message_id == message_id:
            return index
    return None


def _is_answered(turn: PastTurn) -> bool:
    return any(event.author != "user" for event in turn.events)


def _is_restated(said: Say, content: types.Content, turn: PastTurn) -> bool:
    """Whether a message is sent as it was, and the request does not ask for another answer."""
    names_answer = said.replaces is not None and said.replaces == turn.message_id
    return not said.edits and not names_answer and is_same(content, turn.said)


def _check_named(said: Say, turns: Sequence[PastTurn]) -> None:
    if said.replaces is not None and _index_of(turns, said.replaces) is not None:
        raise BadRequest(
            '"messageId" names the message to continue, and it is not in "messages". Send that '
            "message, with the answers in it.",
            code="nothing_to_answer",
        )


def _not_after(branch: Branch, turns: Sequence[PastTurn], index: int) -> Branch:
    """Return the branch with a turn taken back, too, and all since."""
    if index < len(turns) - len(branch.taken_back):
        return dataclasses.replace(branch, taken_back=turns[index:], keeps=None)
    if branch.keeps is turns[index]:
        return dataclasses.replace(branch, keeps=None)
    return branch


def _target(asked: Regenerate, turns: Sequence[PastTurn], at: _Position) -> int | None:
    """Return which turn is answered again, or None if the chat has no such message."""
    brought = None if asked.message is None else MessageId(asked.message.id)
    for name in (asked.message_id, brought):
        index = _index_of(turns, name) if name else None
        if index is not None:
            return index
    if asked.message_id or brought:
        return None
    # What is the last once the chat is where the request wants it.
    last = at.index if at.keeps is not None else at.index - 1
    return last if last >= 0 else None


def _never_seen(
    asked: Regenerate,
    turns: Sequence[PastTurn],
    at: _Position,
    *,
    read: Callable[[UIMessage], types.Content],
) -> Branch:
    """Return a message of the client's whose first request failed before it was stored."""
    if asked.message is None or not has_words(asked.message):
        raise BadRequest(
            "There is no message to answer again. Name one of this chat in messageId, or send the "
            "user message.",
            code="nothing_to_regenerate",
        )
    content = read(asked.message)
    return Branch(content, MessageId(asked.message.id), turns[at.index :], at.keeps)
