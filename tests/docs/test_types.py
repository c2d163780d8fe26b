"""Every line of Python in README.md and docs/ passes the strict type checks that a user's editor makes."""

from pathlib import Path

import pytest
from run_examples import ROOT, blocks_of

api = pytest.importorskip("mypy.api")

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def program(page: Path) -> str:
    """The Python blocks of a page, also those that are not run, with the line numbers of the page."""
    lines: list[str] = []
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.language == "python":
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    return "\n".join(lines) + "\n"


def test_the_examples_have_sound_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", str(ROOT / "python"))
    files = []
    for number, page in enumerate(PAGES):
        text = program(page)
        if text.strip():
            name = f"page{number}_{page.stem.replace('-', '_')}.py"
            (tmp_path / name).write_text(text, encoding="utf-8")
            files.append(str(tmp_path / name))
    assert len(files) >= 10
    config, cache = ROOT / "python/pyproject.toml", ROOT / "target/mypy-docs"
    said, complained, status = api.run(
        ["--config-file", str(config), "--cache-dir", str(cache), *files]
    )
    assert status == 0, said + complained
