from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.postgres import PostgresServer, postgres_server

_TOGETHER = ("cluster", "golden", "faults/test_kill_matrix.py", "plain_adk")
"""Tests that share what is dear to make: they run in one process, where tests run in several."""


# Before pytest-xdist looks at the marks.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        path = item.path.relative_to(here).as_posix()
        for name in _TOGETHER:
            if path.startswith(name):
                item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real server for all tests that want one; each makes a database of its own."""
    with postgres_server() as server:
        yield server


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden-update", action="store_true", help="write the golden files anew")
