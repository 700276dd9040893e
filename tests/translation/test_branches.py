from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_stream_protocol.errors import BadRequest, ClientFault, Conflict, NotFound
from adk_stream_protocol.identifiers import MessageId, ReplyId
from adk_stream_protocol.translation.branches import Branch, is_same, regenerated, said_at
from adk_stream_protocol.translation.contents import ContentLimits, user_content
from adk_stream_protocol.translation.history import PastTurn, past_turns, stamp, steering_stamp
from adk_stream_protocol.translation.instructions import Regenerate, Say
from adk_stream_protocol.wire.messages import Part, UIMessage
from adk_stream_protocol.wire.requests import BEGINNING
from translation.builders import event, text


def chat(*texts: str, unanswered: Sequence[int] = ()) -> list[PastTurn]:
    """Return a chat of messages u1, u2, ... with the answers a1, a2, ..."""
    events = []
    for number, said in enumerate(texts, 1):
        ids = stamp(user_message=MessageId(f"u{number}"), message=MessageId(f"a{number}"))
        named = {"invocation": f"e-{number}", "custom_metadata": ids}
        events.append(event(text(said), author="user", **named))  # type: ignore[arg-type]  # names
        if number not in unanswered:
            events.append(event(text("Yes."), **named))  # type: ignore[arg-type]  # names
    return past_turns(events)


THREE = chat("one", "two", "three")


def content(said: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=said)])


def user(message_id: str, said: str | None = None) -> UIMessage:
    parts: list[Part] = [] if said is None else [{"type": "text", "text": said}]
    return UIMessage(message_id, "user", parts)


def say(
    message_id: str,
    said: str,
    turns: Sequence[PastTurn] = THREE,
    *,
    failed: bool = False,
    edits: bool = False,
    replaces: str | None = None,
    parent: str | None = None,
    is_bare: bool = False,
) -> Branch:
    instruction = Say(
        user(message_id),
        edits=edits,
        replaces=None if replaces is None else MessageId(replaces),
        parent_id=None if parent is None else MessageId(parent),
        is_bare=is_bare,
    )
    return said_at(instruction, content(said), turns, has_failed=lambda _: failed)


def regenerate(
    named: str | None = None,
    brought: str | None = None,
    *,
    said: str | None = None,
    parent: str | None = None,
    turns: Sequence[PastTurn] = THREE,
) -> Branch:
    asked = Regenerate(
        None if named is None else MessageId(named),
        None if brought is None else user(brought, said),
        None if parent is None else MessageId(parent),
    )
    return regenerated(asked, turns, read=partial(user_content, limits=ContentLimits()))


def taken_back(branch: Branch) -> list[str]:
    return [turn.user_message_id for turn in branch.taken_back]


def words(branch: Branch) -> str:
    return "".join(part.text or "" for part in branch.content.parts or [])


# Messages that are sent


def test_new_message_takes_nothing_back() -> None:
    branch = say("new", "hello")
    assert (branch.user_message, words(branch), branch.taken_back) == ("new", "hello", [])
    assert taken_back(say("new", "hello", [])) == []


def test_known_message_with_another_text_is_an_edit_of_it() -> None:
    for edits in (True, False):
        branch = say("u2", "zwei", edits=edits)
        assert (taken_back(branch), words(branch)) == (["u2", "u3"], "zwei")


@pytest.mark.parametrize("hint", [{"edits": True}, {"replaces": "a2"}])
def test_known_message_as_it_was_is_answered_again_where_the_request_says_so(
    hint: dict[str, object],
) -> None:
    assert taken_back(say("u2", "two", **hint)) == ["u2", "u3"]  # type: ignore[arg-type]  # one


def test_bare_message_as_it_was_is_answered_again_if_it_is_the_last() -> None:
    assert taken_back(say("u3", "three", is_bare=True)) == ["u3"]
    with pytest.raises(Conflict, match="regenerate-message"):
        say("u2", "two", is_bare=True)


def test_message_that_is_submitted_again_is_answered_again_only_if_that_failed() -> None:
    assert taken_back(say("u3", "three", failed=True)) == ["u3"]
    for message_id, said in (("u3", "three"), ("u2", "two")):
        with pytest.raises(Conflict) as refused:
            say(message_id, said, failed=message_id == "u2")
        assert refused.value.code == "message_exists"


def test_message_that_continues_another_which_is_missing_is_refused() -> None:
    with pytest.raises(BadRequest) as refused:
        say("u3", "three", replaces="a1", is_bare=False)
    assert refused.value.code == "nothing_to_answer"
    # A message that is new is said, whatever else the request names.
    assert taken_back(say("new", "hello", replaces="a1")) == []


def test_name_of_a_message_that_is_gone_says_nothing() -> None:
    with pytest.raises(Conflict):
        say("u3", "three", replaces="gone")


@pytest.mark.parametrize(
    ("parent", "gone"),
    [(BEGINNING, ["u1", "u2", "u3"]), ("a1", ["u2", "u3"]), ("a2", ["u3"]), ("a3", [])],
)
def test_message_with_a_parent_comes_just_after_it(parent: str, gone: list[str]) -> None:
    branch = say("new", "hello", parent=parent)
    assert (taken_back(branch), branch.keeps) == (gone, None)


def test_users_message_as_parent_stays_without_its_answer() -> None:
    branch = say("new", "hello", parent="u2")
    assert taken_back(branch) == ["u2", "u3"]
    assert branch.keeps is THREE[1]


def test_users_message_without_an_answer_stays_as_it_is() -> None:
    branch = say("new", "hello", chat("one", "two", unanswered=[1]), parent="u1")
    assert (taken_back(branch), branch.keeps) == (["u2"], None)


def test_message_that_steered_a_turn_has_the_answer_of_that_turn() -> None:
    marks = steering_stamp(MessageId("u1b"), ReplyId("r"))
    turns = past_turns(
        [
            event(text("one"), author="user", invocation="e-1"),
            event(text("and"), author="user", invocation="e-1", custom_metadata=marks),
            event(text("Yes."), invocation="e-1"),
            event(text("two"), author="user", invocation="e-2"),
        ]
    )
    branch = say("new", "hello", turns, parent="u1b")
    assert (branch.taken_back, branch.keeps) == (turns[1:], None)


def test_known_message_with_a_parent_is_answered_at_the_earlier_of_both_places() -> None:
    assert taken_back(say("u3", "drei", parent="a1")) == ["u2", "u3"]
    assert taken_back(say("u1", "eins", parent="a2")) == ["u1", "u2", "u3"]
    edited = say("u2", "zwei", parent="u2")
    assert (taken_back(edited), edited.keeps) == (["u2", "u3"], None)


def test_message_where_it_is_already_is_no_branch() -> None:
    # A client that always names the parent says nothing with it.
    for parent in (BEGINNING, "a3"):
        with pytest.raises(Conflict):
            say("u1", "one", parent=parent)
    assert taken_back(say("u3", "three", parent="a2", failed=True)) == ["u3"]


def test_parent_that_is_unknown_is_refused_with_what_to_do() -> None:
    for turns in (THREE, []):
        with pytest.raises(NotFound, match="leave it out") as refused:
            say("new", "hello", turns, parent="gone")
        assert refused.value.code == "unknown_message"


# Messages that are answered again


@pytest.mark.parametrize(
    ("named", "brought", "gone"),
    [
        (None, None, ["u3"]),
        ("a2", None, ["u2", "u3"]),
        ("u2", None, ["u2", "u3"]),
        (None, "u2", ["u2", "u3"]),
        ("a1", "u2", ["u1", "u2", "u3"]),
        ("gone", "u2", ["u2", "u3"]),
    ],
)
def test_message_to_answer_again_is_the_one_named_else_the_clients_last_else_the_last(
    named: str | None, brought: str | None, gone: list[str]
) -> None:
    branch = regenerate(named, brought)
    assert taken_back(branch) == gone
    assert branch.user_message == gone[0]
    assert branch.content is branch.taken_back[0].said
    assert not branch.is_new


def test_message_with_another_text_is_answered_as_edited() -> None:
    branch = regenerate(brought="u2", said="zwei")
    assert (taken_back(branch), words(branch), branch.is_new) == (["u2", "u3"], "zwei", True)
    assert branch.user_message == "u2"
    assert words(regenerate("a1", "u2", said="zwei")) == "one"
    assert not regenerate(brought="u2", said="two").is_new


def test_files_that_a_client_left_out_stay_with_the_message_that_is_answered_again() -> None:
    blob = types.Part(inline_data=types.Blob(data=b"a", mime_type="text/plain"))
    said = event(text("see"), blob, author="user")
    (turn,) = turns = past_turns([said, event(text("Yes."))])
    address: Part = {"type": "file", "mediaType": "text/plain", "url": "https://files/1"}
    for files in ([], [address]):
        see: Part = {"type": "text", "text": "see"}
        brought = UIMessage(turn.user_message_id, "user", [see, *files])
        branch = regenerated(
            Regenerate(None, brought), turns, read=partial(user_content, limits=ContentLimits())
        )
        assert branch.content is turn.said


def test_message_that_the_server_never_saw_is_said() -> None:
    branch = regenerate("gone", "new", said="hello")
    assert (branch.user_message, words(branch), taken_back(branch)) == ("new", "hello", [])


@pytest.mark.parametrize(
    ("turns", "named", "brought"), [([], None, None), (THREE, "gone", None), ([], None, "new")]
)
def test_nothing_to_answer_again_is_refused(
    turns: list[PastTurn], named: str | None, brought: str | None
) -> None:
    with pytest.raises(BadRequest) as refused:
        regenerate(named, brought, turns=turns)
    assert refused.value.code == "nothing_to_regenerate"


@pytest.mark.parametrize(
    ("parent", "gone", "answers"),
    [("a2", ["u2", "u3"], "two"), ("u2", ["u2", "u3"], "two"), ("a3", ["u3"], "three")],
)
def test_parent_says_where_the_chat_ends_that_is_answered_again(
    parent: str, gone: list[str], answers: str
) -> None:
    branch = regenerate(parent=parent)
    assert (taken_back(branch), words(branch), branch.keeps) == (gone, answers, None)


def test_parent_before_the_message_that_is_answered_again_takes_back_what_is_between() -> None:
    branch = regenerate("a3", parent="a1")
    assert (taken_back(branch), words(branch), branch.is_new) == (["u2", "u3"], "three", True)
    kept = regenerate(brought="u3", parent="u1")
    assert (taken_back(kept), kept.keeps) == (["u1", "u2", "u3"], THREE[0])


def test_nothing_can_be_answered_again_at_the_beginning() -> None:
    with pytest.raises(BadRequest):
        regenerate(parent=BEGINNING)
    with pytest.raises(NotFound):
        regenerate("a1", parent="gone")


def test_turn_in_which_nobody_said_anything_cannot_be_answered_again() -> None:
    silent = past_turns([event(text("Welcome."), invocation="e-0")])
    with pytest.raises(BadRequest):
        regenerate(turns=silent)


# The same message


def test_messages_are_the_same_however_their_text_is_cut() -> None:
    parts = [types.Part(text="o"), types.Part(text="ne")]
    assert is_same(content("one"), types.Content(role="user", parts=parts))
    assert not is_same(content("one"), content("One"))
    assert not is_same(content("one"), None)


def test_messages_with_other_files_are_not_the_same() -> None:
    def with_file(data: bytes, kind: str = "text/plain") -> types.Content:
        blob = types.Blob(data=data, mime_type=kind)
        return types.Content(role="user", parts=[text("see"), types.Part(inline_data=blob)])

    assert is_same(with_file(b"a"), with_file(b"a"))
    assert not is_same(with_file(b"a"), with_file(b"b"))
    assert not is_same(with_file(b"a"), with_file(b"a", "text/csv"))
    assert not is_same(with_file(b"a"), content("see"))


# Whatever is asked

IDS = st.sampled_from(["u1", "u2", "u3", "a1", "a2", "a3", "other", BEGINNING])


@settings(deadline=None, max_examples=300)
@given(
    count=st.integers(0, 3),
    unanswered=st.lists(st.integers(1, 3)),
    again=st.booleans(),
    names=st.tuples(st.none() | IDS, IDS, st.none() | IDS),
    said=st.sampled_from(["one", "two", "three", "four"]),
    bare=st.booleans(),
)
def test_what_is_taken_back_is_the_end_of_the_chat_and_the_message_is_not_twice_in_it(
    *,
    count: int,
    unanswered: list[int],
    again: bool,
    names: tuple[str | None, str, str | None],
    said: str,
    bare: bool,
) -> None:
    turns = chat(*["one", "two", "three"][:count], unanswered=unanswered)
    named, message_id, parent = names
    try:
        if again:
            branch = regenerate(named, message_id, said=said, parent=parent, turns=turns)
        else:
            branch = say(message_id, said, turns, replaces=named, parent=parent, is_bare=bare)
    except ClientFault:
        # Refused, so nothing is taken back; the tests above say when.
        return
    left = turns[: count - len(branch.taken_back)]
    assert [*left, *branch.taken_back] == turns
    if branch.keeps is not None:
        assert branch.keeps is branch.taken_back[0]
        left = [*left, branch.keeps]
    ids = [turn.user_message_id for turn in left]
    assert branch.user_message not in ids
    if parent in {"u1", "u2", "u3"}:
        assert ids[-1:] == [parent] or branch.user_message in {t.user_message_id for t in turns}
