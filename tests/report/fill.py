"""Fills the report template: the rule that the Rust writer follows, in thirty lines of Python.

A placeholder is the whole comment, for example ``/*REPORT_CSS*/``. All of them are replaced in one
pass over the template, so that text in the data can never be mistaken for a placeholder.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

WEB = Path(__file__).resolve().parents[2] / "web"

FILES = {
    "UPLOT_JS": "vendor/uPlot/uPlot.iife.min.js",
    "UPLOT_CSS": "vendor/uPlot/uPlot.min.css",
    "REPORT_CSS": "report.css",
    "REPORT_JS": "report.js",
}
PLACEHOLDER = re.compile(r"/\*(UPLOT_JS|UPLOT_CSS|REPORT_CSS|REPORT_DATA|REPORT_JS(?::[a-z_/]+\.js)?)\*/")


def escaped(document: dict) -> str:
    """The document as JSON that cannot end or comment out its ``<script>`` element.

    In JSON ``<`` stands only inside strings, where ``\\u003c`` means the same.
    """
    return json.dumps(document, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")


def fill(document: dict) -> str:
    """The complete page for ``document`` (schema ``ropewalk.report/1``)."""

    def content(match: re.Match[str]) -> str:
        name, _, file = match.group(1).partition(":")
        if name == "REPORT_DATA":
            return escaped(document)
        return (WEB / (file or FILES[name])).read_text(encoding="utf-8")

    template = (WEB / "report.html").read_text(encoding="utf-8")
    return PLACEHOLDER.sub(content, template)
