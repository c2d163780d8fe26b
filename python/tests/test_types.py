"""The package's type annotations are consistent."""

from __future__ import annotations

import contextlib
import inspect
import io
from importlib.resources import files
from pathlib import Path

import pytest

import ropewalk as rw
from ropewalk import _ropewalk
from ropewalk.net import aio


def test_the_package_says_that_it_is_typed() -> None:
    assert files("ropewalk").joinpath("py.typed").is_file()


def test_the_stub_names_what_the_native_module_has() -> None:
    stub = Path(str(files("ropewalk").joinpath("_ropewalk.pyi"))).read_text(encoding="utf-8")
    for name in dir(_ropewalk):
        if not name.startswith("__"):
            assert f"def {name}(" in stub or f"class {name}:" in stub, name
    assert "__version__" in stub and _ropewalk.__version__ == rw.__version__


def test_everything_public_is_documented() -> None:
    things = [(name, getattr(one, name)) for one in (rw, rw.net, aio) for name in one.__all__]
    for name, thing in things:
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), name
            members = inspect.getmembers(thing) if inspect.isclass(thing) else ()
            for key, member in members:
                if inspect.isfunction(member) and not key.startswith("_"):
                    assert inspect.getdoc(member), f"{name}.{key}"


def test_options_are_keyword_only() -> None:
    functions = [rw.run, rw.compare, rw.predict, rw.sweep, rw.net.listen, rw.net.connect]
    for function in functions:
        kinds = [p.kind for p in inspect.signature(function).parameters.values()]
        assert kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) == 1
        by_name = {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}
        assert set(kinds[1:]) <= by_name


def test_the_stubs_are_what_the_modules_have() -> None:
    stubtest = pytest.importorskip("mypy.stubtest")
    root = Path(__file__).parents[1]
    allowed = str(Path(__file__).with_name("stubtest-allowlist.txt"))
    said = io.StringIO()
    arguments = ["ropewalk", "--mypy-config-file", str(root / "pyproject.toml")]
    arguments += ["--allowlist", allowed, "--ignore-unused-allowlist"]
    with contextlib.redirect_stdout(said):
        status = stubtest.test_stubs(stubtest.parse_options(arguments))
    assert status == 0, said.getvalue()


def test_the_types_are_sound() -> None:
    api = pytest.importorskip("mypy.api")
    root = Path(__file__).parents[1]
    cache = root.parent / "target" / "mypy"
    said, complained, status = api.run(
        ["--config-file", str(root / "pyproject.toml"), "--cache-dir", str(cache), str(root / "ropewalk")]
    )
    assert status == 0, said + complained
