"""The runner of the docs' examples, tried on good and on bad pages with a command that is known."""

import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).with_name("run_examples.py")

# Replaces the command: it succeeds, fails with the given status, or needs a file.
COMMAND = """#!/bin/sh
case "$1" in
  run) exit "${2:-0}" ;;
  write) echo x > "$2" ;;
  say) shift; printf '%s\\n' "$@" ;;
  refuse) echo "no: $2" >&2; exit 2 ;;
  predict|read) test -s "$2" ;;
esac
"""


def run_page(directory, text, *options):
    """Runs the runner over one page; returns its exit status and output."""
    binary, page = directory / "ropewalk", directory / "page.md"
    binary.write_text(COMMAND)
    binary.chmod(0o755)
    page.write_text(text)
    command = [sys.executable, RUNNER, "--binary", binary, *options, page]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def block(info, *lines):
    """A fenced block."""
    return "\n".join([f"```{info}", *lines, "```", ""])


GOOD = {
    "a command": block("sh", "ropewalk run"),
    "a prompt": block("sh", "$ ropewalk run"),
    "a continued line": block("sh", "ropewalk run \\", "  0"),
    "a promised failure": block("sh exit=2", "ropewalk run 2"),
    "one block writes, the next reads": block("sh", "ropewalk write a")
    + block("sh", "ropewalk read a"),
    "a scenario with a name": block("toml", "# scenario: mine.toml", "a = 1")
    + block("sh", "ropewalk read mine.toml"),
    "an output": "<!-- output: ropewalk say a b -->\n" + block("text", "a", "b"),
    "a part of an output": "<!-- output 2-3: ropewalk say a b c d -->\n" + block("text", "b", "c"),
    "an error": "<!-- output exit=2: ropewalk refuse x -->\n" + block("text", "no: x"),
    "an indented block": "- so\n\n  ```sh\n  ropewalk run\n  ```\n",
}

BAD = {
    "a command that fails": (block("sh", "ropewalk run 1"), "page.md:2: ropewalk run 1"),
    "a failure that does not come": (block("sh exit=2", "ropewalk run"), "expected 2"),
    "a failure behind a continuation": (block("sh", "ropewalk run \\", "3"), "exit status 3"),
    "a file that is not there": (block("sh", "ropewalk read a"), "ropewalk read a"),
    "broken TOML": (block("toml", "a = = 1") + block("sh", "ropewalk run"), "page.md:2: not TOML"),
    "an output that has changed": (
        "<!-- output: ropewalk say a c -->\n" + block("text", "a", "b"),
        "page.md:3: ropewalk say a c",
    ),
    "an error that has changed": (
        "<!-- output exit=2: ropewalk refuse y -->\n" + block("text", "no: x"),
        "+no: y",
    ),
    "an output of a command that fails": (
        "<!-- output: ropewalk refuse x -->\n" + block("text", "no: x"),
        "exit status 2",
    ),
    "an open block": ("```sh\nropewalk run\n", "never closed"),
    "nothing to run": (block("sh", "cargo build"), "0 examples run"),
    "everything left out": (block("sh no-run", "ropewalk run"), "0 examples run"),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_page_passes(name, tmp_path):
    status, said = run_page(tmp_path, GOOD[name])
    assert status == 0, said


@pytest.mark.parametrize("name", BAD)
def test_a_bad_page_fails_and_the_place_is_shown(name, tmp_path):
    text, expected = BAD[name]
    status, said = run_page(tmp_path, text)
    assert status == 1
    assert expected in said


@pytest.mark.parametrize("lines", [["a", "b"], []])
def test_outputs_that_have_changed_can_be_replaced(tmp_path, lines):
    before, after = "before\n<!-- output: ropewalk say a c -->\n", "after\n"
    status, said = run_page(tmp_path, before + block("text", *lines) + after, "--update")
    assert status == 0, said
    assert (tmp_path / "page.md").read_text() == before + block("text", "a", "c") + after


def test_python_blocks_of_a_page_are_one_program_with_the_lines_of_the_page(tmp_path):
    page = block("python", "x = 1") + "\n" + block("python", "assert x == 1")
    assert run_page(tmp_path, page, "--python", sys.executable)[0] == 0
    status, said = run_page(tmp_path, page + block("python", "raise OSError"), "--python", sys.executable)
    assert status == 1
    assert "line 9" in said


def test_without_python_its_blocks_are_counted_as_left_out(tmp_path):
    page = block("python", "raise OSError") + block("sh", "ropewalk run")
    status, said = run_page(tmp_path, page)
    assert status == 0
    assert "1 left out" in said
