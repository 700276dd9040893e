import pytest

from adk_stream_protocol.demo.tones import SAMPLE_RATE, seconds_of, spoken


def test_speech_is_as_long_as_its_text() -> None:
    short, long = b"".join(spoken("Hello")), b"".join(spoken("Hello Hello"))

    assert seconds_of(short) == pytest.approx(0.3)
    assert long.startswith(short)
    assert seconds_of(long) == pytest.approx(11 / 5 * 0.3)
    assert list(spoken("")) == []


def test_chunks_last_a_tenth_of_a_second() -> None:
    *whole, last = spoken("Hello Hello")

    assert {len(chunk) for chunk in whole} == {2 * SAMPLE_RATE // 10}
    assert 0 < len(last) <= 2 * SAMPLE_RATE // 10


def test_letters_sound_and_pauses_do_not() -> None:
    assert any(b"".join(spoken("a")))
    assert b"".join(spoken("a")) != b"".join(spoken("b"))
    assert not any(b"".join(spoken(" ,.")))
