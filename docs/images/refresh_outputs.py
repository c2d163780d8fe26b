#!/usr/bin/env python3
"""Fills the outputs that README.md and docs/ show with what the commands print today.

    <!-- output: ropewalk run scenarios/wifi-lte.toml -->        whole output
    <!-- output 1-8: ropewalk explain mine.toml -->              these lines of it, counted from 1
    <!-- output exit=2: ropewalk run x.toml --set a=b -->        also what is written to stderr

stands before a block whose fence is followed by `text`; the text in it is replaced. A page's scenarios
(`# scenario: name.toml`) can be used. `--check` changes nothing and fails where a page would change.

    python3 docs/images/refresh_outputs.py --binary target/release/ropewalk
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHOWN = re.compile(
    r"<!-- output(?: (?P<from>\d+)-(?P<to>\d+))?(?: exit=(?P<status>\d))?: (?P<command>ropewalk .*?) -->\n"
    r"(?P<gap>\n?)```text\n(?P<old>.*?)```",
    re.DOTALL,
)
SCENARIO = re.compile(r"```toml\n(# scenario: (\S+)\n.*?)```", re.DOTALL)


def output(match, directory, binary):
    """What the command of a marker prints."""
    environment = dict(os.environ, NO_COLOR="1", TERM="dumb")
    environment["PATH"] = f"{binary.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", match["command"]], cwd=directory, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != int(match["status"] or 0):
        sys.exit(f"{match['command']}: exit status {done.returncode}\n{done.stderr}")
    lines = (done.stderr if match["status"] else done.stdout).splitlines()
    if match["from"]:
        lines = lines[int(match["from"]) - 1 : int(match["to"])]
    return "".join(f"{line}".rstrip() + "\n" for line in lines)


def refreshed(text, binary):
    """The page with new outputs."""
    with tempfile.TemporaryDirectory(prefix="ropewalk-outputs-") as name:
        directory = Path(name)
        for examples in ("scenarios", "papers"):
            shutil.copytree(ROOT / examples, directory / examples)
        for scenario in SCENARIO.finditer(text):
            (directory / Path(scenario[2]).name).write_text(scenario[1], encoding="utf-8")

        def replace(match):
            start = match.start("old") - match.start()
            return match[0][:start] + output(match, directory, binary) + "```"

        return SHOWN.sub(replace, text)


def main():
    """Refreshes, or checks, all pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True, help="the built `ropewalk`, release")
    parser.add_argument("--check", action="store_true", help="change nothing, fail where a page would change")
    args = parser.parse_args()
    stale = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]:
        old = page.read_text(encoding="utf-8")
        new = refreshed(old, args.binary.resolve()) if SHOWN.search(old) else old
        if new != old:
            stale.append(page.relative_to(ROOT))
            if not args.check:
                page.write_text(new, encoding="utf-8")
    for page in stale:
        print(f"{page}: {'shows an old output' if args.check else 'refreshed'}")
    return 1 if args.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
