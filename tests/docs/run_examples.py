#!/usr/bin/env python3
"""Runs the examples of README.md and docs/**/*.md, so that a page cannot go stale.

The blocks of a page run in order, in one fresh directory that holds a copy of `scenarios/` and `papers/`.
A block may read files that an earlier one wrote.

    ```sh            every line that begins with `ropewalk` runs and must exit with status 0
    ```sh exit=2     ... must exit with that status (a page about error messages)
    ```sh no-run     shown, not run (a server, two machines, hours)
    ```python        all blocks of a page are one program
    ```toml          must be TOML; if its first line is `# scenario`, `ropewalk predict` must accept it;
                     `# scenario: mine.toml` also keeps it under that name for the blocks that follow
    ```text          after `<!-- output: ropewalk ... -->`: what that command prints on standard output; after
                     `<!-- output 12-19: ... -->` so many lines of it, and after `<!-- output exit=2: ... -->` what
                     it prints on standard error when it fails so. `--update` puts there what it prints now
"""

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Longer than any example that a reader would wait for; shorter than a hang in a test run.
TIMEOUT_S = 300


# The line before a block that shows the output of a command.
OUTPUT = re.compile(r"<!-- output(?P<flags>[^:]*): (?P<command>.*) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its flags, the number of its first line, its text, and the line before it."""

    language: str
    flags: tuple[str, ...]
    line: int
    text: str
    before: str = ""


def blocks_of(page_text):
    """All fenced blocks of a page, in order."""
    blocks, opened, mark, lines, before = [], None, "", [], ""
    for number, line in enumerate(page_text.splitlines(), start=1):
        stripped = line.strip()
        if opened is None:
            mark = stripped[: len(stripped) - len(stripped.lstrip("`"))]
            if len(mark) >= 3 and "`" not in stripped[len(mark) :]:
                words = stripped[len(mark) :].split() or [""]
                opened, indent, lines = (words, number + 1), len(line) - len(line.lstrip()), []
                heading = before
        elif stripped.startswith(mark) and not stripped.strip("`"):
            (language, *flags), start = opened
            blocks.append(Block(language, tuple(flags), start, "".join(f"{text}\n" for text in lines), heading))
            opened = None
        else:
            lines.append(line[indent:] if line[:indent].isspace() else line)
        before = stripped
    if opened is not None:
        raise ValueError(f"line {opened[1] - 1}: the code block is never closed")
    return blocks


def commands_of(block):
    """The `ropewalk` command lines of a block with their line numbers, continuations joined."""
    commands, pending, start = [], "", 0
    for number, line in enumerate(block.text.splitlines(), start=block.line):
        start = start if pending else number
        pending += line.strip().removeprefix("$ ")
        if pending.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        if pending.split(" ")[0] == "ropewalk":
            commands.append((start, pending))
        pending = ""
    return commands


def expected_status(block):
    """The exit status that the page states."""
    promised = [flag.removeprefix("exit=") for flag in block.flags if flag.startswith("exit=")]
    return int(promised[0]) if promised else 0


class Page:
    """Runs the examples of one page and collects the failures."""

    def __init__(self, path, binary, python, update=False):
        self.path, self.python, self.update = path, python, update
        self.name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
        self.failures, self.ran, self.left_out = [], 0, 0
        # What each shell command of the page has printed: on standard output, and on standard error.
        self.printed = {}
        self.environment = dict(os.environ, MPLBACKEND="Agg", NO_COLOR="1", TERM="dumb")
        self.environment["PATH"] = f"{binary.parent}{os.pathsep}{os.environ['PATH']}"

    def run(self):
        """Runs every block in a fresh directory."""
        try:
            blocks = blocks_of(self.path.read_text(encoding="utf-8"))
        except ValueError as error:
            self.failures.append(f"{self.name}: {error}")
            return self
        with tempfile.TemporaryDirectory(prefix="ropewalk-docs-") as directory:
            for examples in ("scenarios", "papers"):
                if (ROOT / examples).is_dir():
                    shutil.copytree(ROOT / examples, Path(directory) / examples)
            for block in blocks:
                self.run_block(block, Path(directory))
            self.run_python([b for b in blocks if b.language == "python"], directory)
        return self

    def run_block(self, block, directory):
        """Runs a shell block or tries a TOML block."""
        if "no-run" in block.flags:
            self.left_out += block.language in ("sh", "python")
        elif block.language == "sh":
            for line, command in commands_of(block):
                self.execute(line, ["bash", "-c", command], directory, expected_status(block))
        elif found := OUTPUT.fullmatch(block.before):
            self.compare_output(block, directory, found)
        elif block.language == "toml":
            self.try_toml(block, directory)

    def compare_output(self, block, directory, found):
        """The block must show what its command prints."""
        flags, command = found["flags"].split(), found["command"]
        statuses = [int(flag.removeprefix("exit=")) for flag in flags if flag.startswith("exit=")]
        status = (statuses or [0])[0]
        if command not in self.printed:
            self.execute(block.line, ["bash", "-c", command], directory, status)
        if command not in self.printed:
            return
        shown = self.printed[command][1 if statuses else 0]
        for first, last in (flag.split("-") for flag in flags if flag[0].isdigit()):
            shown = "".join(shown.splitlines(keepends=True)[int(first) - 1 : int(last)])
        if shown == block.text:
            return
        if self.update:
            page = self.path.read_text(encoding="utf-8")
            # With its fences: the block may be empty.
            info = " ".join([block.language, *block.flags])
            old, new = (f"```{info}\n{text}```" for text in (block.text, shown))
            self.path.write_text(page.replace(old, new), encoding="utf-8")
            return
        changes = "\n    ".join(
            difflib.unified_diff(
                block.text.splitlines(), shown.splitlines(), "page", "command", n=0, lineterm=""
            )
        )
        self.failures.append(f"{self.name}:{block.line}: {command}\n    {changes}")

    def try_toml(self, block, directory):
        """TOML must parse; a scenario must be one that `ropewalk` accepts."""
        try:
            tomllib.loads(block.text)
        except tomllib.TOMLDecodeError as error:
            self.failures.append(f"{self.name}:{block.line}: not TOML: {error}")
            return
        first, _, name = block.text.splitlines()[0].partition(":") if block.text.strip() else ("", "", "")
        if first.strip() == "# scenario":
            file = directory / (Path(name.strip()).name or f"line-{block.line}.toml")
            file.write_text(block.text, encoding="utf-8")
            self.execute(block.line, ["ropewalk", "predict", file.name], directory, 0)

    def run_python(self, blocks, directory):
        """Runs the Python blocks as one program whose line numbers are those of the page."""
        blocks = [block for block in blocks if "no-run" not in block.flags]
        if not blocks:
            return
        if self.python is None:
            self.left_out += len(blocks)
            return
        program = []
        for block in blocks:
            program += [""] * (block.line - 1 - len(program)) + block.text.splitlines()
        file = Path(directory) / f"{self.path.stem}.py"
        file.write_text("\n".join(program) + "\n", encoding="utf-8")
        self.execute(blocks[0].line, [str(self.python), file.name], directory, 0)

    def execute(self, line, command, directory, expected):
        """Runs one command, and keeps what it prints; another exit status than the expected one is a failure."""
        self.ran += 1
        shown = command[-1] if command[0] == "bash" else " ".join(command)
        try:
            done = subprocess.run(
                command, cwd=directory, env=self.environment, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            self.failures.append(f"{self.name}:{line}: {shown}\n    {error}")
            return
        if done.returncode != expected:
            said = "\n    ".join((done.stderr or done.stdout).strip().splitlines()[-15:])
            status = f"exit status {done.returncode}, expected {expected}"
            self.failures.append(f"{self.name}:{line}: {shown}\n    {status}\n    {said}")
            return
        self.printed[shown] = (done.stdout, done.stderr)


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True, help="the built `ropewalk`")
    parser.add_argument("--python", type=Path, help="a python that has the package; without it, "
                        "python blocks are left out and counted")  # fmt: skip
    parser.add_argument("--update", action="store_true", help="replace outputs that have changed")
    parser.add_argument("pages", nargs="*", type=Path, help="default: README.md and docs/**/*.md")
    return parser.parse_args()


def main():
    """Runs all pages; exit status 1 if an example fails or if there is none."""
    args = arguments()
    if args.binary.name != "ropewalk" or not args.binary.is_file():
        sys.exit(f"{args.binary}: no such binary; build it first")
    # Not resolved: a virtual environment's python is a link whose place matters.
    python = args.python and Path(os.path.abspath(args.python))
    found = args.pages or [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    pages = [Page(path.resolve(), args.binary.resolve(), python, args.update).run() for path in found]
    for page in pages:
        if page.ran:
            print(f"{page.name}: {page.ran} run, {page.left_out} left out", file=sys.stderr)
    failures = [failure for page in pages for failure in page.failures]
    ran = sum(page.ran for page in pages)
    print("\n".join(failures))
    print(f"{ran} examples run, {len(failures)} failed", file=sys.stderr)
    # Pages without a single example would make this check one that cannot fail.
    return 1 if failures or ran == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
