"""Serves the till until it is killed: `python serve.py plain|ours FOLDER hang|return`.

Prints its URL, then `charged` after each charge.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import cast

import anyio

from plain_adk.sides import Side, app_on
from plain_adk.till import Till
from support.serving import serving


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _serve(side: Side, folder: Path, *, hangs: bool) -> None:
    till = Till(folder / "charges.txt", on_charge=lambda: _tell("charged"))
    till.may_charge.set()
    if not hangs:
        till.may_return.set()
    async with app_on(side, folder / "sessions.db", till) as app, serving(app) as url:
        _tell(url)
        await anyio.sleep_forever()


if __name__ == "__main__":
    _, _side, _folder, _ending = sys.argv
    assert _side in {"plain", "ours"}
    anyio.run(partial(_serve, cast("Side", _side), Path(_folder), hangs=_ending == "hang"))
