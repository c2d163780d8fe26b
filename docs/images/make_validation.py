#!/usr/bin/env python3
"""Reproduces the papers and refreshes the tables of docs/validation.md.

    python3 docs/images/make_validation.py --binary target/release/ropewalk

Takes some minutes. `--from rows.json` takes what `ropewalk reproduce --all --json` printed instead.
"""

import argparse
import json
import re
import subprocess
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "validation.md"
GOOD, BAD = ("agrees", "claim holds"), ("differs", "claim fails", "failed")


def reproduce(binary):
    """Every row of every paper."""
    done = subprocess.run([binary.resolve(), "reproduce", "--all", "--json"], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def version(binary):
    """What the command calls itself."""
    done = subprocess.run([binary.resolve(), "--version"], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.strip()


def line(name, item, rows):
    """One line of the table."""
    verdicts = Counter(row["verdict"] for row in rows)
    good, bad = (sum(verdicts[v] for v in which) for which in (GOOD, BAD))
    judged = good + bad + verdicts["undecided"]
    # A number, or "deterministic" where all seeds give the same; nothing where no seed plays a part.
    known = {row["seeds"] if isinstance(row["seeds"], str) else str(int(row["seeds"])) for row in rows if row.get("seeds")}
    seeds = ", ".join(sorted(known)) or "-"
    cells = [name, item, str(judged), str(good), str(verdicts["undecided"]), str(bad), str(verdicts["shown"]), seeds]
    return "| " + " | ".join(cells) + " |"


def table(rows):
    """A line for each item of each paper, and one for each paper."""
    heads = ["source", "item", "judged", "agree or hold", "undecided", "differ or fail", "shown", "seeds"]
    lines = ["| " + " | ".join(heads) + " |", "| --- | --- |" + " ---: |" * (len(heads) - 2)]
    papers = list(dict.fromkeys(row["paper"] for row in rows))
    for paper in papers:
        own = [row for row in rows if row["paper"] == paper]
        lines.append(line(f"**`{paper}`**", "**all**", own))
        for item in dict.fromkeys(row["item"] for row in own):
            lines.append(line(f"`{paper}`", f"`{item}`", [row for row in own if row["item"] == item]))
    lines.append(line("**all**", "", rows))
    return "\n".join(lines) + "\n"


def fill(text, name, content):
    """The page with what stands between two marks replaced."""
    pattern = rf"(<!-- validation: {name} -->\n).*?(<!-- end -->)"
    new, count = re.subn(pattern, lambda m: f"{m[1]}\n{content}\n{m[2]}", text, flags=re.S)
    assert count == 1, name
    return new


def main():
    """Does as the arguments say."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--binary", type=Path, default=ROOT / "target" / "release" / "ropewalk", help="the command")
    arguments.add_argument("--from", dest="rows", type=Path, help="rows that were printed before")
    asked = arguments.parse_args()
    rows = json.loads(asked.rows.read_text()) if asked.rows else reproduce(asked.binary)
    text = PAGE.read_text()
    text = fill(text, "version", f"Version: {version(asked.binary)}.\n")
    text = fill(text, "rows", table(rows))
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
