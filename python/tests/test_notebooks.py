"""The gallery of notebooks: every cell runs, and what a cell ends with can be shown."""

from __future__ import annotations

import ast
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "python/examples/notebooks").glob("*.ipynb"))


def test_there_are_five_notebooks() -> None:
    assert len(NOTEBOOKS) == 5


@pytest.fixture
def anywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A directory that has nothing of a checkout."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    if command := os.environ.get("ROPEWALK"):
        monkeypatch.setenv("PATH", str(Path(command).parent), prepend=os.pathsep)


def run_cell(source: str, names: dict[str, Any]) -> object:
    """Runs a cell as a notebook does, and returns the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_all_cells_of_a_notebook_run(path: Path, anywhere: None) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["nbformat"] == 4
    code = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    sources = ["".join(cell["source"]) for cell in code]
    if any('["ropewalk"' in source for source in sources) and shutil.which("ropewalk") is None:
        pytest.skip("the command `ropewalk` is not on PATH")
    if any("distributed" in source for source in sources):
        pytest.importorskip("distributed")
    assert all(cell["outputs"] == [] for cell in code), "clear the outputs before a commit"
    names: dict[str, Any] = {}
    shown = [run_cell(source, names) for source in sources]
    for value in shown:
        # Results of the package show themselves as HTML.
        if type(value).__module__.startswith("ropewalk"):
            assert value._repr_html_().strip().startswith("<")  # type: ignore[attr-defined]
