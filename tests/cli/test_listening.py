from __future__ import annotations

import socket

from adk_stream_protocol.cli.listening import listen


def test_what_is_accepted_sends_small_pieces_at_once() -> None:
    with (
        listen("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname(), timeout=5),
        listener.accept()[0] as accepted,
    ):
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
