"""The table of contents of the documentation site, and the search for its dead links."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "packaging"))

import book  # noqa: E402


def tree(directory: Path, files: dict[str, str]) -> Path:
    """Writes these files."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return directory


def test_the_site_has_each_page_of_the_repository_once():
    chapters = [target for _, target in book.LINK.findall(book.summary(ROOT))]
    assert len(chapters) == len(set(chapters))
    assert book.pages(ROOT) <= set(chapters)
    assert {"README.md", "docs/guides/install.md", "papers/kuhn2014/README.md", "CHANGELOG.md"} <= set(chapters)


CONTENTS = {
    "docs/README.md": "# Docs\n[Start](guides/a.md)\n## Guides: how\n| [A `b`](guides/a.md#x) |\n[Why](why/README.md)\n",
    "docs/guides/a.md": "# A\n",
    "docs/why/README.md": "[Not here](../guides/c.md) [Because](because.md)\n",
    "docs/why/because.md": "# Because\n",
    "papers/README.md": "# Papers\n",
}


def test_the_table_of_contents_follows_the_list_of_pages(tmp_path: Path):
    listed = {**CONTENTS, "docs/README.md": CONTENTS["docs/README.md"] + "## Papers\n[Papers](../papers/README.md)\n"}
    lines = book.summary(tree(tmp_path, listed)).splitlines()
    assert [line for line in lines[3:] if line][:6] == [
        "# Guides: how",
        "- [A b](docs/guides/a.md)",
        "- [Why](docs/why/README.md)",
        "  - [Because](docs/why/because.md)",
        "# Papers",
        "- [Papers](papers/README.md)",
    ]


def test_a_page_that_no_list_names_is_an_error(tmp_path: Path):
    with pytest.raises(SystemExit, match="papers/README.md"):
        book.summary(tree(tmp_path, CONTENTS))


def test_links_lead_to_the_name_that_a_page_has_in_the_site():
    text = "[a](README.md) [![b](c.png)](../README.md#d) [e](docs/README.md) [f](XREADME.md) README.md"
    expected = "[a](index.md) [![b](c.png)](../index.md#d) [e](docs/index.md) [f](XREADME.md) README.md"
    assert book.as_index(text) == expected


@pytest.mark.parametrize(
    ("link", "found"),
    [
        ("b/c.html", 0),
        ("b/c.html#here", 0),
        ("b/c.html#there", 1),
        ("b/d.html", 1),
        ("b", 1),
        ("#top", 0),
        ("#bottom", 1),
        ("b/a%20picture.png", 0),
        ("https://example.org/b", 0),
        ("mailto:someone@example.org", 0),
    ],
)
def test_a_dead_link_is_found(tmp_path: Path, link: str, found: int):
    page = f'<h1 id="top">A</h1><a href="{link}">x</a>'
    site = tree(tmp_path, {"a.html": page, "b/c.html": '<p id="here">', "b/a picture.png": "", "404.html": page})
    assert len(book.dead_links(site, "api")) == found


def test_the_pages_of_other_tools_are_targets_alone(tmp_path: Path):
    site = tree(tmp_path, {"a.html": '<a href="api/index.html">', "api/index.html": '<a href="nowhere.html">'})
    assert book.dead_links(site, "api") == []
    assert len(book.dead_links(site, "other")) == 1
