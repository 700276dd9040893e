"""The failures that the ledger exists for, side by side: without us, and with us.

A test of the plain side fails on the day that ADK or the AI SDK mends it: then the table in
`docs/reference/plain-adk.md` has a row to lose.
"""

from __future__ import annotations

import pytest

from plain_adk.failures import FAILURES, Outcome
from plain_adk.sides import Side
from plain_adk.table import markdown, page_table, plain_name, terminal

pytestmark = pytest.mark.anyio


class Shown:
    """What each failure came to on each side; shown when first asked for."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._outcomes: dict[tuple[str, Side], Outcome] = {}

    async def outcome(self, name: str, side: Side) -> Outcome:
        failure = FAILURES[name]
        if (name, side) not in self._outcomes:
            seen = [
                await failure.scenario(side, self._folders.mktemp(f"{name}-{side}"))
                for _ in range(failure.times)
            ]
            assert seen == seen[:1] * failure.times, "not the same each time"
            self._outcomes[name, side] = seen[0]
        return self._outcomes[name, side]

    async def all(self) -> dict[tuple[str, Side], Outcome]:
        sides: tuple[Side, Side] = ("plain", "ours")
        return {(name, side): await self.outcome(name, side) for name in FAILURES for side in sides}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return Shown(tmp_path_factory)


@pytest.mark.parametrize("name", FAILURES)
async def test_it_goes_wrong_without_us(name: str, shown: Shown) -> None:
    outcome = await shown.outcome(name, "plain")
    assert not FAILURES[name].safe(outcome), f"{plain_name(name)} does not fail any more"


@pytest.mark.parametrize("name", FAILURES)
async def test_it_is_safe_with_us(name: str, shown: Shown) -> None:
    outcome = await shown.outcome(name, "ours")
    assert FAILURES[name].safe(outcome), str(outcome)


async def test_the_page_shows_what_was_seen(
    shown: Shown, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = await shown.all()
    with capsys.disabled():
        print(f"\n\n{terminal(outcomes)}\n")  # noqa: T201  # the table is for whoever runs this
    assert page_table() == markdown(outcomes)
