"""The benchmarks still run. What they measure is for `make bench`: no test asserts on time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*words: str, given: str = "") -> str:
    """Run the benchmarks' command and return what it says."""
    paths = [ROOT, ROOT / "src", ROOT / "tests"]
    done = subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "benchmarks", *words],
        input=given,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


ALL = [
    "text",
    "paced-load",
    "text-growth",
    "encoding",
    "idle-streams",
    "token-log",
    "wake-up",
    "pending",
    "turn-cost",
    "live",
    "live-waiting",
    "idle-sockets",
]
SHORT = ["encoding", "token-log", "turn-cost", "live"]
"""All of them take minutes, however little each measures."""


def test_benchmarks_measure_and_tell_in_the_sections_of_their_page(tmp_path: Path) -> None:
    names = ALL if os.environ.get("ADK_STREAM_TEST_BENCHMARKS") else SHORT
    page = tmp_path / "benchmarks.md"
    page.write_text((ROOT / "docs/benchmarks.md").read_text("utf-8"), "utf-8")
    told = run(*names, "--scale", "tiny", "--rounds", "1", "--page", str(page))
    tables = told.split("\n# ")[1:]
    assert [each.partition("\n")[0] for each in tables] == names
    written = page.read_text("utf-8")
    assert all(each.partition("\n")[2].strip() in written for each in tables)
    assert "1 round" in written
    if "text" in names:
        assert (tmp_path / "benchmarks-text.svg").read_text("utf-8").startswith("<svg")


def test_a_sample_is_taken_by_a_process_of_its_own(tmp_path: Path) -> None:
    setting = {"folder": str(tmp_path), "scale": "tiny"}
    sample = json.loads(run("sample", "token-log", "sqlite", given=json.dumps(setting)))
    assert sample["rate"] > 0
    assert sample["cpu"] > 0
