"""Listeners and associations whose calls block."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from os import PathLike
from types import TracebackType
from typing import Self, TypeVar, Unpack

from ropewalk import _ropewalk as native
from ropewalk.errors import ClosedError
from ropewalk.net import _options as options
from ropewalk.net._common import BATCH, BaseAssociation, BaseListener, Data
from ropewalk.net._figures import PathEvent, StreamEvent, event_of, stream_event_of
from ropewalk.net._options import Delivery, Extensions, KeyLike, Texts

T = TypeVar("T")


def listen(
    addresses: Texts = "0.0.0.0",
    *,
    key: KeyLike | None = None,
    allow: Texts | None = None,
    peers: str | PathLike[str] | None = None,
    plain: bool = False,
    profile: str = "live",
    port: int | Iterable[int] | None = None,
    scheduler: str = "lay",
    congestion: str | None = None,
    receive_buffer: int | str = options.RECEIVE_BUFFER,
    streams: int = 1024,
    mtu: int = 1500,
    **extensions: Unpack[Extensions],
) -> Listener:
    """Listen for associations of peers.

    Parameters
    ----------
    addresses
        Own addresses, one per path: a list, or one text with commas. ``192.0.2.7`` has port 9899;
        port 0 is any free one (:attr:`Listener.addresses`).
    key
        Own secret key: a :class:`Key`, or the name of its file. Without one, a new one is created for
        this listener alone; if ``allow`` has a name, it is the default key of ``ropewalk pair``.
    allow
        The peers that are accepted: names of paired peers (``ropewalk pair``), with the date and the
        pre-shared key of their entries, or public keys. Others get no answer. Without it, every peer that
        knows this listener's public key is accepted.
    peers
        The list in which names are looked up, instead of ``~/.config/ropewalk/peers.toml``.
    plain
        No encryption and no authentication: SCTP in UDP (RFC 6951), for other programs' stacks. Anyone
        on the way can then read and change the data.
    profile
        ``"live"``, or ``"rfc9260"`` for strictly what RFC 9260 allows.
    port
        With ``plain=True``, the SCTP port, or the SCTP ports, of the services; 9899 by default. The UDP port
        follows the address.
    scheduler, congestion
        Scheduler and congestion control for the data that this end sends. None: the congestion control of
        the profile, ``"bbr"`` with ``"live"``.
    receive_buffer
        Bytes, or a text with a unit. Paths that differ more need a larger one; it costs memory.
    streams
        Most streams in each direction. Each one preserves order; streams do not wait for each other.
    mtu
        Largest IP packet that is probed, bytes; the path MTU is discovered for each path.
    extensions
        Options of :class:`Extensions`, by name: ``interleaving=True``.

    Raises
    ------
    OptionError
        An option is invalid.
    BindError
        An address cannot be used.
    """
    secret, allowed = options.listen_key(key, allow, peers, plain)
    ports = options.listen_ports(port, plain)
    places = options.places("addresses", addresses)
    settings = options.socket_options(
        scheduler, congestion, receive_buffer, streams, mtu, profile, plain, **extensions
    )
    return Listener(native.net_listen(places, secret, allowed, peers, settings, ports))


def connect(
    to: Texts | None = None,
    *,
    peer: str | None = None,
    peers: str | PathLike[str] | None = None,
    via: Texts | None = None,
    key: KeyLike | None = None,
    plain: bool = False,
    port: int | None = None,
    local_port: int | None = None,
    timeout: float = 10,
    profile: str = "live",
    scheduler: str = "lay",
    congestion: str | None = None,
    receive_buffer: int | str = options.RECEIVE_BUFFER,
    streams: int = 1024,
    mtu: int = 1500,
    **extensions: Unpack[Extensions],
) -> Association:
    """Open an association; returns when it is established.

    Parameters
    ----------
    to
        The peer's addresses, or host names: a list, or one text with commas. Without a port, 9899. By
        default the addresses at which ``peer`` was paired.
    peer
        The peer, by the name under which it was paired (``ropewalk pair``), or by its public key, which it
        proves.
    peers
        The list in which the name is looked up, instead of ``~/.config/ropewalk/peers.toml``.
    via
        Own addresses, or names of network interfaces, one per path. Without it, the system chooses one
        address. Two of each make two paths, in their order.
    key
        Own secret key: a :class:`Key`, or the name of its file. Without one, the
        default key of ``ropewalk pair`` if ``peer`` is a name and the key exists. Otherwise a new one is
        created, which suffices if the peer admits everyone.
    plain, profile, scheduler, congestion, receive_buffer, streams, mtu, extensions
        As for :func:`listen`.
    port
        With ``plain=True``, the SCTP port of the service; 9899 by default.
    local_port
        With ``plain=True``, the own SCTP port. By default any free one, which permits many associations
        between two hosts.
    timeout
        Seconds until the attempt is given up.

    Raises
    ------
    OptionError
        An option is invalid, or a name does not resolve.
    BindError
        An own address cannot be used.
    ConnectError
        The peer refused, or did not answer; a wrong key gets no answer.
    """
    ports = options.connect_ports(port, local_port, plain)
    to, secret = options.connect_peer(to, key, peer, peers, plain)
    remotes = [options.look_up(*target) for target in options.targets(to)]
    places = options.sources(via, remotes)
    settings = options.socket_options(
        scheduler, congestion, receive_buffer, streams, mtu, profile, plain, **extensions
    )
    opening = native.net_connect(remotes, places, secret, settings, ports, timeout)
    return Association(opening.wait(None))


class Listener(BaseListener):
    """Sockets that wait for associations; created by :func:`listen`.

    As a context manager it is closed at the end.
    """

    def accept(self, *, timeout: float | None = None) -> Association:
        """The next association that a peer has opened; waits for it.

        Raises
        ------
        TimedOut
            None arrived within ``timeout`` seconds.
        ClosedError
            The listener is closed, perhaps by another thread.
        """
        found = waited(self._native.take, self._native.arrival, timeout)
        if found is None:
            raise ClosedError("the listener is closed")
        return Association(found)

    def connect(
        self,
        to: Texts | None = None,
        *,
        peer: str | None = None,
        peers: str | PathLike[str] | None = None,
        port: int | None = None,
        local_port: int | None = None,
        timeout: float = 10,
    ) -> Association:
        """Open an association from these sockets, with the key and the options of this listener.

        So one program both accepts and opens associations at the same addresses. If two listeners connect to each
        other, there is one association between them.

        Parameters
        ----------
        to, peer, peers, port, timeout
            As for :func:`connect`. The paths begin at this listener's addresses.
        local_port
            With ``plain=True``, the own SCTP port; by default the first one of this listener.

        Raises
        ------
        OptionError
            An option is invalid, or a name does not resolve.
        ConnectError
            The peer refused, or did not answer, or there is an association with it already.
        ClosedError
            The listener is closed.
        """
        plain = self.public_key is None
        ports = options.connect_ports(port, local_port, plain)
        to, public = options.further_peer(to, peer, peers, plain)
        remotes = [options.look_up(*target) for target in options.targets(to)]
        return Association(self._native.connect(remotes, public, ports, timeout).wait(None))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Association(BaseAssociation):
    """Messages to and from a peer, over all paths; created by :func:`connect` or :meth:`Listener.accept`.

    As a context manager it is shut down at the end, or aborted if an exception leaves the block.
    Iterating gives messages until the peer has shut it down.
    """

    def send(
        self,
        data: Data,
        *,
        stream: int = 0,
        ppid: int = 0,
        timeout: float | None = None,
        **how: Unpack[Delivery],
    ) -> None:
        """Queue a message; waits only while the send buffer is full.

        Parameters
        ----------
        data
            At least one byte. Up to :attr:`message_size` bytes fit into one packet.
        stream
            From 0 to :attr:`streams` - 1. Messages of one stream arrive in order.
        ppid
            Payload protocol identifier, for the peer: any 32-bit number.
        timeout
            Most seconds to wait for room; nothing is queued after that.
        **how
            ``unordered``, ``immediate``, ``lifetime``, ``retransmissions``, ``priority``, ``urgency`` and ``copies``, as in
            :class:`Delivery`.

        Raises
        ------
        OptionError
            There is no such stream, or no byte, or a value is out of its range.
        TimedOut
            There was no room in time.
        ClosedError
            The association is shutting down, or has ended.
        """
        self._sending([data], stream, ppid, how).wait(timeout)

    def send_all(
        self,
        messages: Iterable[Data],
        *,
        stream: int = 0,
        ppid: int = 0,
        **how: Unpack[Delivery],
    ) -> None:
        """Queue many messages, which is cheaper than one by one; waits for room when necessary."""
        remaining = iter(messages)
        while batch := list(islice(remaining, BATCH)):
            self._sending(batch, stream, ppid, how).wait(None)

    def receive(self, *, timeout: float | None = None) -> native.Message | None:
        """The next message; waits for it. None: the peer has shut down, and all messages were read.

        Raises
        ------
        TimedOut
            None arrived within ``timeout`` seconds.
        ClosedError
            The association did not end in an orderly way.
        """
        message = waited(self._native.take, self._native.arrival, timeout)
        if message is None:
            self._native.check_end()
        return message

    def receive_all(self, *, timeout: float | None = None) -> list[native.Message]:
        """All messages that have arrived, at least one; waits for it. Empty where ``receive`` gives None."""
        first = self.receive(timeout=timeout)
        return [] if first is None else [first, *self._native.take_all()]

    def __iter__(self) -> Iterator[native.Message]:
        while (message := self.receive()) is not None:
            yield message

    def path_event(self, *, timeout: float | None = None) -> PathEvent | None:
        """The next change of a path; waits for it. None: the association has ended.

        Up to 64 changes are kept until they are read.

        Raises
        ------
        TimedOut
            Nothing changed within ``timeout`` seconds.
        """
        event = waited(self._native.take_path_event, self._native.path_events, timeout)
        return None if event is None else event_of(event)

    def path_events(self) -> Iterator[PathEvent]:
        """Changes of paths as they happen, until the association has ended; for a separate thread."""
        while (event := self.path_event()) is not None:
            yield event

    def stream_event(self, *, timeout: float | None = None) -> StreamEvent | None:
        """The next event about streams; waits for it. None: the association has ended.

        A reset by the peer is told after all messages that the peer sent before it were received.

        Raises
        ------
        TimedOut
            Nothing happened to the streams within ``timeout`` seconds.
        """
        event = waited(self._native.take_stream_event, self._native.stream_events, timeout)
        return None if event is None else stream_event_of(event)

    def stream_events(self) -> Iterator[StreamEvent]:
        """Events about streams as they happen, until the association has ended; for a separate thread."""
        while (event := self.stream_event()) is not None:
            yield event

    def flush(self, *, timeout: float | None = None) -> None:
        """Wait until the peer has acknowledged everything sent.

        Raises
        ------
        TimedOut
            It took longer.
        ClosedError
            The association has ended before: some of the data may not have arrived.
        """
        self._native.flushed().wait(timeout)

    def shutdown(self, *, timeout: float | None = None) -> None:
        """Shut down; returns when everything is acknowledged and both ends have finished.

        Both directions end: read the messages that you still expect before.

        Raises
        ------
        TimedOut
            It took longer; the shutdown continues nevertheless.
        ClosedError
            It ended otherwise: some of the data may not have arrived.
        """
        self._native.shutdown().wait(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.shutdown()
        else:
            self.abort()


def waited(
    take: Callable[[], T | None],
    arrival: Callable[[], native.Operation],
    timeout: float | None,
) -> T | None:
    """The result of `take`, waiting for it; None if nothing more will arrive."""
    until = None if timeout is None else time.monotonic() + timeout
    left = timeout
    while (found := take()) is None:
        if not arrival().wait(left):
            return take()
        # Another thread may have taken it first.
        left = None if until is None else max(until - time.monotonic(), 0)
    return found
