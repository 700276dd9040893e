import pytest

from adk_stream_protocol.demo.hearing import Ear, Sound
from adk_stream_protocol.demo.tones import spoken

RATE = 16_000
LOUD = b"".join(spoken("aeiou" * 4))  # 1.8 s at this rate


def seconds(count: float) -> bytes:
    """Return that much silence."""
    return bytes(2 * int(RATE * count))


def heard(*chunks: bytes) -> list[Sound]:
    ear = Ear()
    return [sound for chunk in chunks for sound in ear.hear(chunk, RATE)]


def test_speech_begins_when_it_is_loud_and_ends_after_silence() -> None:
    assert heard(seconds(1)) == []
    assert heard(LOUD) == ["began"]
    assert heard(LOUD, seconds(0.3)) == ["began"]
    assert heard(LOUD, seconds(0.5)) == ["began", "ended"]
    assert heard(LOUD, seconds(0.3), LOUD, seconds(2), LOUD) == ["began", "ended", "began"]


def test_click_is_not_speech() -> None:
    assert heard(seconds(0.1), LOUD[2000:2640], seconds(1)) == []


@pytest.mark.parametrize("size", [1, 7, 640, 1000, 100_000])
def test_size_of_the_chunks_does_not_matter(size: int) -> None:
    sound = LOUD + seconds(1) + LOUD + seconds(1)
    chunks = [sound[start : start + size] for start in range(0, len(sound), size)]

    assert heard(*chunks) == ["began", "ended", "began", "ended"]


def test_other_rates_have_other_lengths_of_silence() -> None:
    ear = Ear()

    assert ear.hear(LOUD, 48_000) == ["began"]
    assert ear.hear(seconds(0.5), 48_000) == []
    assert ear.hear(seconds(0.8), 48_000) == ["ended"]


def test_client_that_says_when_speech_begins_also_says_when_it_ends() -> None:
    ear = Ear()

    assert ear.begin() == ["began"]
    assert ear.begin() == []
    assert ear.hear(LOUD + seconds(1), RATE) == []
    assert ear.end() == ["ended"]
    assert ear.end() == []
    assert ear.hear(LOUD + seconds(1), RATE) == ["began", "ended"]
