"""What listeners and associations of both flavours have in common: all that does not wait."""

from __future__ import annotations

from typing import Any

from ropewalk import _ropewalk as native
from ropewalk.errors import ClosedError
from ropewalk.net import _options as options
from ropewalk.net._figures import Stats, stats_of

Data = bytes | bytearray | memoryview

#: Messages that are handed over at once: enough that the call costs little for each.
BATCH = 256


class BaseListener:
    """A listener, but for waiting."""

    def __init__(self, inner: native.Listener) -> None:
        self._native = inner

    @property
    def addresses(self) -> list[str]:
        """Where it listens, with ports, as :func:`connect` takes it."""
        return self._native.addresses

    @property
    def public_key(self) -> str | None:
        """What it is known by; None in the clear."""
        return self._native.public_key

    def close(self) -> None:
        """Take no more associations. Those that were accepted go on, the others are aborted."""
        self._native.close()

    def __repr__(self) -> str:
        state = "closed" if self._native.closed else ", ".join(self.addresses)
        return f"<Listener {state}>"


class BaseAssociation:
    """An association, but for waiting."""

    def __init__(self, inner: native.Association) -> None:
        self._native = inner

    def _sending(
        self, messages: list[Any], stream: int, ppid: int, unordered: bool
    ) -> native.Operation:
        options.within("stream", stream, 0, 65_535)
        options.within("ppid", ppid, 0, 2**32 - 1)
        return self._native.send(stream, ppid, messages, unordered)

    def abort(self) -> None:
        """End it at once, at both ends; what was not acknowledged is lost."""
        self._native.abort()

    def stats(self) -> Stats:
        """What it has done so far.

        Raises
        ------
        ClosedError
            It is gone.
        """
        found = self._native.stats()
        if found is None:
            raise ClosedError("the association has ended, and its figures are gone")
        return stats_of(found)

    @property
    def ports(self) -> tuple[int, int] | None:
        """The SCTP ports of this end and of the peer, with ``plain=True``; None if it is encrypted or gone."""
        return self._native.ports

    @property
    def peer(self) -> str | None:
        """The peer's public key, which it has proved; None in the clear."""
        return self._native.peer

    @property
    def streams(self) -> int:
        """Streams on which one may send."""
        return self._native.streams

    @property
    def message_size(self) -> int:
        """Bytes of the largest message that travels in one packet; longer ones take several."""
        return self._native.message_size

    def __repr__(self) -> str:
        known = self._native.stats()
        paths = known["paths"] if known else []
        return f"<Association {', '.join(p['remote'] or '?' for p in paths) or 'gone'}>"
