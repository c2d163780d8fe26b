"""The table of threats names code and tests that exist."""

import csv
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def threats() -> list[dict[str, str]]:
    lines = (ROOT / "docs/data/threat-model.csv").read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def parts(cell: str) -> list[str]:
    return [part for part in re.split(r"[;,]\s*", cell) if part]


def test_threats_name_code_that_exists():
    missing = [path for row in threats() for path in parts(row["code"]) if not (ROOT / path).exists()]
    assert missing == []


def test_threats_name_tests_that_exist():
    sources = [file for folder in ("crates", "tests") for kind in ("rs", "py") for file in (ROOT / folder).rglob(f"*.{kind}")]
    defined = {name for file in sources for name in re.findall(r"\b(?:fn|def) (\w+)", file.read_text())}
    rows = threats()
    missing = [name for row in rows for name in parts(row["tests"]) if name.split("::")[-1] not in defined]
    assert missing == []
    assert sum(bool(row["tests"]) for row in rows) > 90
