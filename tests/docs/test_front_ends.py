"""The code of the front-end pages is code that is built and clicked: blocks equal files.

A comment before a block names its file, and with `#` a region of it. `--golden-update` writes the
blocks anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/howto/front-ends.md"
README = ROOT / "tests/clients/README.md"
SOURCES = {
    ROOT / "README.md": "tests/clients/pages/readme/Chat.tsx",
    ROOT / "docs/tutorial/first-chat.md": "tests/clients/pages/tutorial/App.tsx",
}
BLOCK = re.compile(r"^<!-- (\S+) -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def code_of(name: str) -> str:
    """Return a file, or a region of it, as a page shows it."""
    path, _, region = name.partition("#")
    text = (ROOT / path).read_text("utf-8")
    if not region:
        return text
    found = re.search(
        rf"^// #region {region}\n(.*?)^// #endregion$", text, re.MULTILINE | re.DOTALL
    )
    assert found is not None, f"{path} has no region {region!r}"
    return found[1]


def test_the_code_of_the_page_is_that_of_the_files_it_names(
    pytestconfig: pytest.Config,
) -> None:
    text = PAGE.read_text("utf-8")
    if pytestconfig.getoption("--golden-update"):
        shown = BLOCK.sub(
            lambda found: f"<!-- {found[1]} -->\n```{found[2]}\n{code_of(found[1])}```", text
        )
        PAGE.write_text(shown, "utf-8")
        return
    for name, _, code in BLOCK.findall(text):
        assert code == code_of(name), name


def test_every_block_of_the_page_names_its_file() -> None:
    text = PAGE.read_text("utf-8")
    assert len(BLOCK.findall(text)) == len(re.findall(r"^```\w+$", text, re.MULTILINE)) > 0


@pytest.mark.parametrize("page", SOURCES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_first_lines_are_those_that_are_clicked(page: Path) -> None:
    (code,) = re.findall(r"^```tsx\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert code == code_of(SOURCES[page])


def test_the_listed_versions_are_those_that_are_clicked() -> None:
    given = json.loads(code_of("tests/clients/package.json"))["dependencies"]
    versions = {name: version.rpartition("@")[2] for name, version in given.items()}
    rows = re.findall(
        r"^\| `(?:react|vue|svelte|assistant)`.*$", README.read_text("utf-8"), re.MULTILINE
    )
    listed = set(re.findall(r"\b\d+\.\d+\.\d+\b", " ".join(row.split("|")[2] for row in rows)))
    frameworks = ("@ai-sdk/", "@assistant-ui/")
    assert listed == {version for name, version in versions.items() if name.startswith(frameworks)}
