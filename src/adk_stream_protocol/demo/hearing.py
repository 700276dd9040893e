"""Hears when somebody speaks, by loudness and nothing else; what is said it cannot tell.

Time is counted in samples and never by a clock: the same audio is heard the same however fast it
arrives.
"""

import struct
from typing import Final, Literal

__all__ = ["Ear", "Sound"]

Sound = Literal["began", "ended"]
"""Somebody began to speak, or ended."""

_FRAME_SECONDS: Final = 0.02
_LOUD: Final = 500  # of 32,767, on average: above the noise of a room, below a voice near by
_FRAMES_TO_BEGIN: Final = 3  # 60 ms: longer than a click
_FRAMES_TO_END: Final = 20  # 400 ms: longer than the gap between two words


class Ear:
    """Follows 16-bit little-endian PCM of one channel; chunks may end anywhere."""

    def __init__(self) -> None:
        self._rest = b""  # of the newest chunk; less than a frame
        self._loud = 0  # loud frames since the last quiet one
        self._quiet = 0  # quiet frames since the last loud one
        self._speaking = False  # somebody speaks
        self._told = False  # the client says itself when speech begins and ends

    def hear(self, pcm: bytes, rate: int) -> list[Sound]:
        """Return what the chunk brings; nothing while the client itself says it."""
        size = 2 * max(1, int(rate * _FRAME_SECONDS))
        sound = self._rest + pcm
        whole = len(sound) - len(sound) % size
        self._rest = sound[whole:]
        frames = (sound[start : start + size] for start in range(0, whole, size))
        return [heard for frame in frames for heard in self._hear_frame(frame)]

    def begin(self) -> list[Sound]:
        """Take the client's word that speech begins; from then on it also says when it ends."""
        self._told = True
        return self._turn(speaking=True)

    def end(self) -> list[Sound]:
        """Take the client's word that nothing more comes for now."""
        self._told = False
        self._rest = b""
        self._loud = self._quiet = 0
        return self._turn(speaking=False)

    def _hear_frame(self, frame: bytes) -> list[Sound]:
        if _loudness(frame) >= _LOUD:
            self._loud, self._quiet = self._loud + 1, 0
        else:
            self._loud, self._quiet = 0, self._quiet + 1
        if self._told:
            return []
        if self._loud >= _FRAMES_TO_BEGIN:
            return self._turn(speaking=True)
        if self._quiet >= _FRAMES_TO_END:
            return self._turn(speaking=False)
        return []

    def _turn(self, *, speaking: bool) -> list[Sound]:
        if speaking == self._speaking:
            return []
        self._speaking = speaking
        return ["began" if speaking else "ended"]


def _loudness(frame: bytes) -> float:
    samples: tuple[int, ...] = struct.unpack(f"<{len(frame) // 2}h", frame)
    return sum(map(abs, samples)) / len(samples)
