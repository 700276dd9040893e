"""One server of a cluster, as a process: `python -m support.cluster_server '{"url": ...}'`."""

from __future__ import annotations

import dataclasses
import json
import logging
import socket
import sys
from pathlib import Path

import anyio

from adk_stream_protocol.cli.listening import Server, address_of
from adk_stream_protocol.server.databases import open_database
from adk_stream_protocol.server.settings import Settings
from adk_stream_protocol.server.wiring import Services, create_app
from adk_stream_protocol.stores.opening import parse_database
from support.cluster_agent import cluster_agent

__all__: list[str] = []

_LIMITS = dataclasses.replace(
    Settings(),
    max_turns=10_000,
    max_pending=10_000,
    # A comment in the middle of a stream would be a difference between two readers' bytes.
    keep_alive_seconds=600.0,
)


async def _serve(url: str, folder: Path, *, lease: float, drain: int) -> None:
    settings = dataclasses.replace(_LIMITS, lease_seconds=lease)
    async with open_database(parse_database(url), settings.keeping()) as opened:
        app = create_app(
            cluster_agent(folder),
            settings=settings,
            services=Services(sessions=opened.sessions),
            stores=opened.stores,
        )
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def up() -> None:
                sys.stdout.write(f"{address_of(listener, '127.0.0.1')}\n")
                sys.stdout.flush()

            await Server(app, drain_seconds=drain, up=up).serve_until_told(listener)


def main() -> None:
    """Serve until told to end."""
    given = json.loads(sys.argv[1])
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("google_adk").setLevel(logging.WARNING)
    anyio.run(_serve_given, given)


async def _serve_given(given: dict[str, object]) -> None:
    await _serve(
        str(given["url"]),
        Path(str(given["folder"])),
        lease=float(str(given["lease"])),
        drain=int(str(given["drain"])),
    )


if __name__ == "__main__":
    main()
