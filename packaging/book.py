#!/usr/bin/env python3
"""Builds the documentation site: the pages by mdBook, and beside them the references of the Rust and Python code.

    packaging/book.py --mdbook MDBOOK --python PYTHON   writes target/site (`make docs`)
    packaging/book.py --summary                         prints the table of contents

docs/README.md lists the pages, so the table of contents is made of it. A page that is not listed is an error, and
so is a link of the finished site that leads nowhere.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from common import LIBRARIES, PACKAGING, ROOT, cargo, put, target_directory

# Pages outside docs/ and papers/.
PROJECT = {"Changelog": "CHANGELOG.md", "Contributing": "CONTRIBUTING.md"}
# Made for the site; it leads to the references of the code.
CODE = "reference-of-the-code.md"
API = "api"
LINK = re.compile(r"\[((?:[^][]|\[[^]]*\])+)\]\(([^)\s]+)\)")
# pdoc finds the modules that `ropewalk` names in `__all__`; the others are imported only by those who use them.
MODULES = ("ropewalk", "ropewalk.net.aio", "ropewalk.errors", "ropewalk.dask", "ropewalk.gym")
# mdBook writes README.md as index.html, but does not change the links to it.
INDEX = re.compile(r"(^|/)README\.md(?=$|#)")
FENCE = re.compile(r"^(```+|~~~+).*?^\1", re.MULTILINE | re.DOTALL)


def main() -> int:
    """Prints the table of contents, or builds the site."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--summary", action="store_true", help="print the table of contents, and build nothing")
    parser.add_argument("--mdbook", type=Path, default="mdbook", help="the command of mdBook")
    parser.add_argument("--python", type=Path, default=sys.executable, help="a Python with ropewalk and pdoc")
    options = parser.parse_args()
    if options.summary:
        print(summary(ROOT))
        return 0
    site = target_directory() / "site"
    source = target_directory() / "site-source"
    stage(ROOT, source)
    shutil.rmtree(site, ignore_errors=True)
    subprocess.run([options.mdbook, "build", "--dest-dir", site, source], check=True)
    rust_reference(site / API / "rust")
    python_reference(options.python, site / API / "python")
    broken = dead_links(site, API)
    for link in broken:
        print(link, file=sys.stderr)
    print(f"{site / 'index.html'}: {sum(1 for _ in site.rglob('*.html'))} pages, {len(broken)} dead links")
    return 1 if broken else 0


def summary(root: Path) -> str:
    """SUMMARY.md of mdBook."""
    lines = ["# Summary", "", "[Ropewalk](README.md)"]
    seen = {"README.md", "docs/README.md"}
    for heading, text in sections(root / "docs" / "README.md"):
        chapters = [*listed(root, "docs/README.md", text, seen, "")]
        if chapters:
            lines += ["", f"# {heading}", "", *chapters]
    lines += ["", "# Project", "", "- [All pages](docs/README.md)", f"- [Rust and Python code]({CODE})"]
    lines += [f"- [{title}]({path})" for title, path in PROJECT.items()]
    if unlisted := sorted(pages(root) - seen):
        raise SystemExit(f"not listed in docs/README.md, nor by a page that it lists: {', '.join(unlisted)}")
    return "\n".join(lines) + "\n"


def pages(root: Path) -> set[str]:
    """The pages that the site must have, besides those of PROJECT."""
    return {str(path.relative_to(root)) for top in ("docs", "papers") for path in (root / top).rglob("*.md")}


def sections(page: Path) -> Iterator[tuple[str, str]]:
    """The headings of the second level, each with the text below it."""
    for part in re.split(r"(?m)^## ", page.read_text())[1:]:
        heading, _, text = part.partition("\n")
        yield heading, text


def listed(root: Path, page: str, text: str, seen: set[str], indent: str) -> Iterator[str]:
    """The chapters to which a text of a page links, in its order. Below a README.md are those of its directory."""
    for title, target in LINK.findall(text):
        path = os.path.normpath(Path(page).parent / target.partition("#")[0])
        elsewhere = indent and not path.startswith(f"{Path(page).parent}/")
        if elsewhere or path in seen or path not in pages(root):
            continue
        seen.add(path)
        yield f"{indent}- [{title.replace('`', '')}]({path})"
        if Path(path).name == "README.md":
            yield from listed(root, path, (root / path).read_text(), seen, f"{indent}  ")


def stage(root: Path, source: Path) -> None:
    """Copies the pages, pictures and the files that pages link to, in the layout of the repository."""
    shutil.rmtree(source, ignore_errors=True)
    put(source / "book.toml", (PACKAGING / "book.toml").read_bytes())
    inside = source / "src"
    put(inside / "SUMMARY.md", as_index(summary(root)))
    put(inside / CODE, code_page())
    for page in ["README.md", *PROJECT.values(), *sorted(pages(root))]:
        text = (root / page).read_text()
        put(inside / index(page), as_index(text))
        for _, target in LINK.findall(FENCE.sub("", text)):
            path = os.path.normpath(Path(page).parent / target.partition("#")[0])
            if "://" not in target and not path.endswith(".md") and (root / path).is_file():
                put(inside / path, (root / path).read_bytes())


def as_index(text: str) -> str:
    """A page whose links lead to index.md in place of README.md."""

    def renamed(found: re.Match[str]) -> str:
        return f"[{as_index(found[1])}]({index(found[2])})"

    return LINK.sub(renamed, text)


def index(path: str) -> str:
    """README.md is index.md in the site."""
    return INDEX.sub(r"\1index.md", path)


def code_page() -> str:
    """The page that leads to the references of the code."""
    command = [cargo(), "metadata", "--format-version", "1", "--no-deps", "--locked"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    packages = json.loads(done.stdout)["packages"]
    described = {one["name"].removeprefix("ropewalk-"): one["description"] for one in packages}
    rows = "".join(
        f"| [`ropewalk-{name}`]({API}/rust/ropewalk_{name}/index.html) | {described[name]} |\n" for name in LIBRARIES
    )
    return f"""# Rust and Python code

This page leads to the descriptions of all public functions and types, which are made from the code.

[The Python package]({API}/python/ropewalk.html) has runs, models, schedulers of your own and sockets.

| Rust crate | contains |
| --- | --- |
{rows}"""


def rust_reference(out: Path) -> None:
    """Copies what rustdoc writes for the libraries."""
    made = target_directory() / "doc"
    # It also contains what earlier builds described.
    shutil.rmtree(made, ignore_errors=True)
    packages = [word for name in LIBRARIES for word in ("--package", f"ropewalk-{name}")]
    subprocess.run([cargo(), "doc", "--locked", "--no-deps", "--lib", *packages], cwd=ROOT, check=True)
    shutil.copytree(made, out)


def python_reference(python: Path, out: Path) -> None:
    """What pdoc writes for the Python package."""
    subprocess.run([python, "-m", "pdoc", "--output-directory", out, *MODULES], check=True)


class Page(HTMLParser):
    """The links and the anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects the attributes that lead somewhere or can be led to."""
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id" and value:
                self.anchors.add(value)


def dead_links(site: Path, apart: str) -> list[str]:
    """The links of the pages to files or anchors that do not exist. The pages in the directory `apart` are targets only."""
    read = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in read.items():
        name = path.relative_to(site)
        # 404.html is shown for any address, so its links begin at the root of the server.
        if name.parts[0] == apart or name.name == "404.html":
            continue
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            if not target.is_file():
                found.append(f"{name}: no {link}")
            elif parts.fragment and target in read and unquote(parts.fragment) not in read[target].anchors:
                found.append(f"{name}: {link} has no such anchor")
    return found


if __name__ == "__main__":
    sys.exit(main())
