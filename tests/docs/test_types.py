"""Every line of Python in README.md and docs/ passes the strict type checks that a user's editor makes."""

from pathlib import Path

import pytest
from run_examples import ROOT, blocks_of

api = pytest.importorskip("mypy.api")

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def programs(page: Path) -> list[str]:
    """The Python of a page, also what is not run, with its line numbers. A block that begins with an import begins a program."""
    found: list[list[str]] = []
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.language != "python":
            continue
        if not found or block.text.startswith(("import ", "from ")):
            found.append([])
        found[-1] += [""] * (block.line - 1 - len(found[-1])) + block.text.splitlines()
    return ["\n".join(lines) + "\n" for lines in found]


def test_the_examples_have_sound_types(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", str(ROOT / "python"))
    files = []
    for number, page in enumerate(PAGES):
        for part, text in enumerate(programs(page)):
            file = tmp_path / f"page{number}_{part}_{page.stem.replace('-', '_')}.py"
            file.write_text(text, encoding="utf-8")
            files.append(str(file))
    assert len(files) >= 25
    config, cache = ROOT / "python/pyproject.toml", ROOT / "target/mypy-docs"
    said, complained, status = api.run(
        ["--config-file", str(config), "--cache-dir", str(cache), "--warn-unreachable", *files]
    )
    assert status == 0, said + complained
