from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from support.postgres import PostgresServer, postgres_server

# How fast inputs are made depends on what else the machine does.
settings.register_profile("shared", suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


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
