"""Proxies as people have them before a server in development: each changes the request's `Host`."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal, TypeAlias

import anyio
from anyio.streams.text import TextReceiveStream

__all__ = ["PROXIES", "Proxy", "proxied"]

Proxy: TypeAlias = Literal["vite", "node"]
PROXIES: Final[tuple[Proxy, ...]] = ("vite", "node")

_VITE: Final = Path(__file__).parents[2] / "client/ui/node_modules/vite/dist/node/index.js"

_SCRIPTS: Final[dict[Proxy, str]] = {
    # Vite's short form: an address and nothing else.
    "vite": """
        const { createServer } = await import(vite);
        const server = await createServer({
          configFile: false, appType: 'custom', logLevel: 'error',
          server: { host: '127.0.0.1', port: 0, hmr: false, proxy: { '^/.*': target } },
        });
        await server.listen();
        console.log(server.httpServer.address().port);
    """,
    # As nginx does it by default: the upstream's name for the Host, all other headers as they are.
    "node": """
        const { createServer, request } = await import('node:http');
        const server = createServer((asked, answer) => {
          const { method, url, headers } = asked;
          const sent = request(target + url, {
            method, headers: { ...headers, host: new URL(target).host, connection: 'close' },
          }, got => {
            answer.writeHead(got.statusCode, got.headers);
            got.pipe(answer);
          });
          sent.on('error', () => answer.destroy());
          answer.on('close', () => sent.destroy());
          asked.pipe(sent);
        });
        server.listen(0, '127.0.0.1', () => console.log(server.address().port));
    """,
}


@asynccontextmanager
async def proxied(kind: Proxy, target: str, folder: Path) -> AsyncIterator[str]:
    """Run a proxy before a server, by its name `localhost`; yield the proxy's own address."""
    address = target.replace("127.0.0.1", "localhost")
    script = f"const vite = {str(_VITE)!r}, target = {address!r};{_SCRIPTS[kind]}"
    command = ["node", "--input-type=module", "--eval", script]
    process = await anyio.open_process(command, stderr=subprocess.STDOUT, cwd=folder)
    async with process:
        assert process.stdout is not None
        with anyio.fail_after(60):
            port = await TextReceiveStream(process.stdout).receive()
        assert port.strip().isdigit(), port
        try:
            yield f"http://127.0.0.1:{int(port)}"
        finally:
            process.kill()
