from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from support.cluster import Cluster, running_cluster
from support.cluster_plays import Conductor, conducting
from support.cluster_tabs import Tab, open_tab


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
async def conductor(cluster: Cluster) -> AsyncIterator[Conductor]:
    async with conducting(cluster) as conductor:
        yield conductor


@pytest.fixture
async def tab_a(cluster: Cluster) -> AsyncIterator[Tab]:
    async with open_tab(cluster.a) as tab:
        yield tab


@pytest.fixture
async def tab_b(cluster: Cluster) -> AsyncIterator[Tab]:
    async with open_tab(cluster.b) as tab:
        yield tab
