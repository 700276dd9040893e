"""The ways a stock client can reach the chat routes: a story is told once for each."""

from __future__ import annotations

from dataclasses import dataclass

from support.conformance import (
    SDK_VERSIONS,
    SOCKET_VERSIONS,
    AutomaticSends,
    Prepared,
    SdkVersion,
    SocketVersion,
    StockChat,
)
from support.socket import socket_url
from support.stage import Stage

__all__ = ["CONNECTIONS", "PAGES", "SOCKETS", "Connect"]


@dataclass(frozen=True)
class Connect:
    """One version of the client, and the transport it uses."""

    sdk: SdkVersion | SocketVersion
    socket: str = ""
    """Which socket it uses, `ws` or `live`; empty: it posts."""

    def __call__(
        self,
        stage: Stage,
        *,
        auto: AutomaticSends = "approvals",
        chat_id: str | None = None,
        resume: bool = False,
        prepare: Prepared = "all",
        browser: bool = False,
        query: str = "",
        always_valid: bool = True,
    ) -> StockChat:
        """Open a page of a chat."""
        api = socket_url(stage.url, self.socket) if self.socket else f"{stage.url}/api/chat"
        return StockChat(
            f"{api}{query}",
            self.sdk,
            socket=bool(self.socket),
            auto=auto,
            chat_id=chat_id,
            resume=resume,
            prepare=prepare,
            browser=browser,
            always_valid=always_valid,
        )

    def __str__(self) -> str:
        return f"{self.sdk}-{self.socket or 'http'}"


SOCKETS = [
    Connect(version, socket=route)
    for route in ("ws", "live")
    for version in SOCKET_VERSIONS
    # Early clients differ from late ones in how they read, whatever runs behind the socket.
    if route == "ws" or version != "ai7early"
]
CONNECTIONS = [*(Connect(version) for version in SDK_VERSIONS), *SOCKETS]
PAGES = [
    *(Connect(version) for version in SDK_VERSIONS),
    Connect("ai7", socket="ws"),
    Connect("ai6", socket="live"),
]
"""Every version over HTTP, and each socket once: for stories that are about what a page reads."""
