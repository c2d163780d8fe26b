"""The common base of all results: the document that the command prints."""

from __future__ import annotations

import json
from typing import Any


class Document:
    """A result that knows its JSON document."""

    _json: str

    def json(self) -> str:
        """The document as the command prints it with ``--json``."""
        return self._json

    def to_dict(self) -> dict[str, Any]:
        """The document as plain dicts, lists and numbers, a new copy each time."""
        document: dict[str, Any] = json.loads(self._json)
        return document
