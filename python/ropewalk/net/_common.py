"""The common part of blocking and asyncio listeners and associations: everything that does not wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from ropewalk import _ropewalk as native
from ropewalk.errors import ClosedError, OptionError
from ropewalk.net import _options as options
from ropewalk.net._control import GONE, Control
from ropewalk.net._figures import Counters, Stats, stats_of
from ropewalk.net._options import Delivery

Data = bytes | bytearray | memoryview

#: Messages per call into the native half: enough to make the cost of the call negligible.
BATCH = 256


class BaseListener:
    """A listener without the calls that wait."""

    def __init__(self, inner: native.Listener) -> None:
        self._native = inner

    @property
    def addresses(self) -> list[str]:
        """The addresses at which it listens, with ports, in the form for :func:`connect`."""
        return self._native.addresses

    @property
    def public_key(self) -> str | None:
        """Its public key; None without encryption."""
        return self._native.public_key

    def counters(self) -> Counters:
        """What has arrived and what was refused so far. Raises :class:`ClosedError` if it is closed."""
        found = self._native.counters()
        if found is None:
            raise ClosedError("the listener is closed, and its figures are gone")
        return Counters(**found)

    def close(self) -> None:
        """Accept no more associations. Accepted ones continue, the others are aborted."""
        self._native.close()

    def __repr__(self) -> str:
        state = "closed" if self._native.closed else ", ".join(self.addresses)
        return f"<Listener {state}>"


class BaseAssociation(Control):
    """An association without the calls that wait."""

    def __init__(self, inner: native.Association) -> None:
        self._native = inner
        self._control = inner.control()

    def _sending(
        self, messages: list[Any], stream: int, ppid: int, how: Delivery
    ) -> native.Operation:
        options.within("stream", stream, 0, 65_535)
        options.within("ppid", ppid, 0, 2**32 - 1)
        return self._native.send(stream, ppid, messages, options.delivery(**how))

    def abort(self, reason: str = "") -> None:
        """Abort it at both ends; unacknowledged data is lost. The peer is told the reason, if there is one."""
        self._native.abort(reason)

    def stats(self) -> Stats:
        """Its statistics so far.

        Raises
        ------
        ClosedError
            It has ended, and its statistics are gone.
        """
        found = self._native.stats()
        if found is None:
            raise ClosedError(GONE)
        return stats_of(found)

    @property
    def ports(self) -> tuple[int, int] | None:
        """The SCTP ports of this end and of the peer, with ``plain=True``; None if it is encrypted or has ended."""
        return self._native.ports

    @property
    def peer(self) -> str | None:
        """The peer's public key, which it has proved; None without encryption."""
        return self._native.peer

    @property
    def streams(self) -> int:
        """Number of streams to send on."""
        return self._native.streams

    @property
    def interleaves(self) -> bool:
        """Whether messages of different streams are interleaved: both ends asked for it."""
        return self._native.interleaves

    @property
    def reports_non_renegable(self) -> bool:
        """Whether each end reports data that it will not drop (NR-SACK): both ends asked for it."""
        return self._native.reports_non_renegable

    @property
    def reconfigures(self) -> bool:
        """Whether streams can be reset and added: both ends asked for it."""
        return self._native.reconfigures

    def reset_streams(
        self,
        streams: Iterable[int] = (),
        *,
        direction: Literal["outgoing", "incoming", "both"] = "outgoing",
    ) -> None:
        """Request that streams start over; a :class:`StreamEvent` tells how it ended.

        Messages that were sent earlier are delivered before the reset. Those that are sent later on outgoing streams
        wait for it.

        Parameters
        ----------
        streams
            Their numbers; none means all.
        direction
            ``"outgoing"``: streams on which this end sends. ``"incoming"``: the peer is asked to reset streams on
            which it sends, and may refuse.

        Raises
        ------
        OptionError
            There is no such stream, or the association does not reconfigure.
        NetError
            An earlier request has not ended.
        ClosedError
            The association is shutting down, or has ended.
        """
        numbers = [options.within("streams", stream, 0, 65_535) for stream in streams]
        self._native.reset_streams(numbers, direction)

    def reset_association(self) -> None:
        """Request that all streams of both directions, and TSNs, start over; no message is lost.

        Raises as :meth:`reset_streams`.
        """
        self._native.reset_association()

    def add_streams(self, *, outgoing: int = 0, incoming: int = 0) -> None:
        """Request further streams: outgoing ones, on which this end sends, and incoming ones, on which the peer sends.

        The peer may refuse both. Raises as :meth:`reset_streams`.
        """
        outgoing = options.within("outgoing", outgoing, 0, 65_535)
        self._native.add_streams(outgoing, options.within("incoming", incoming, 0, 65_535))

    @property
    def authenticates(self) -> bool:
        """Whether chunks can be authenticated (AUTH, RFC 4895): both ends asked for it."""
        return self._native.authenticates

    @property
    def reconfigures_addresses(self) -> bool:
        """Whether addresses can be added and removed (ASCONF, RFC 5061): both ends asked for it."""
        return self._native.reconfigures_addresses

    def add_address(self, address: str) -> None:
        """Tell the peer that this end has this address as well, without a port.

        Paths begin there when the peer has answered, which a :class:`PathEvent` tells (``own-address-added``).

        Raises
        ------
        OptionError
            The address cannot be used, or the association does not reconfigure addresses.
        NetError
            Too many requests wait for an answer.
        ClosedError
            The association is shutting down, or has ended.
        """
        self._native.add_address(address)

    def remove_address(self, address: str) -> None:
        """Tell the peer that this end gives up this address; paths that begin there end at once.

        The last address cannot be removed. A :class:`PathEvent` tells the answer (``own-address-removed``). Raises as
        :meth:`add_address`.
        """
        self._native.remove_address(address)

    def request_primary(self, address: str) -> None:
        """Ask the peer to send to this address of this end first, as long as it does not send on all paths.

        A :class:`PathEvent` tells the answer (``own-primary-requested``). Raises as :meth:`add_address`.
        """
        self._native.request_primary(address)

    def set_shared_key(self, number: int, key: bytes) -> None:
        """Set a secret for authenticated chunks, or replace it; the peer needs it as well.

        Does not change which one is active.

        Raises
        ------
        OptionError
            There are 16 secrets already, or this one is longer than 256 bytes.
        """
        self._native.set_shared_key(options.within("number", number, 0, 65_535), key)

    def activate_shared_key(self, number: int) -> None:
        """Authenticate what is sent with this secret from now on.

        Raises :class:`OptionError` if there is none, or if it was deactivated.
        """
        self._native.activate_shared_key(options.within("number", number, 0, 65_535))

    def deactivate_shared_key(self, number: int) -> None:
        """Do not use this secret for what is sent any more, until it is set again.

        What the peer authenticates with it is accepted, until it is deleted.
        Raises :class:`OptionError` if there is none, or if it is active.
        """
        self._native.deactivate_shared_key(options.within("number", number, 0, 65_535))

    def delete_shared_key(self, number: int) -> None:
        """Delete a secret: what the peer authenticates with it is discarded.

        Raises :class:`OptionError` if there is none, or if it is active.
        """
        self._native.delete_shared_key(options.within("number", number, 0, 65_535))

    def set_stream_scheduler(self, name: str) -> None:
        """Change the order in which messages of different streams are sent.

        ``"first-come"``, ``"round-robin"``, ``"round-robin-per-packet"``, ``"priority"``,
        ``"fair-capacity"`` or ``"weighted-fair"`` (RFC 8260, 3).

        Raises
        ------
        OptionError
            There is no scheduler of that name.
        """
        self._native.set_stream_scheduler(name)

    def set_stream_value(self, stream: int, value: int) -> None:
        """Set the priority of a stream (the least is sent first) or its weight, as the stream scheduler reads it.

        Raises
        ------
        OptionError
            There is no such stream, or the value is not from 0 to 65535.
        """
        options.within("stream", stream, 0, 65_535)
        options.within("value", value, 0, 65_535)
        if not self._native.set_stream_value(stream, value):
            raise OptionError(f"stream = {stream}: the association has {self.streams} streams")

    @property
    def message_size(self) -> int:
        """Bytes of the largest message that fits into one packet; longer ones need several."""
        return self._native.message_size

    def __repr__(self) -> str:
        known = self._native.stats()
        paths = known["paths"] if known else []
        return f"<Association {', '.join(p['remote'] or '?' for p in paths) or 'gone'}>"
