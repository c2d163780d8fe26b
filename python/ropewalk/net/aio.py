"""The sockets for asyncio: calls that block in :mod:`ropewalk.net` are awaited here.

>>> import asyncio
>>> from ropewalk.net import aio
>>> async def main():
...     async with aio.listen("127.0.0.1:0") as listener:
...         peer = listener.public_key
...         async with await aio.connect(listener.addresses, peer=peer) as near:
...             far = await listener.accept()
...             await near.send(b"hello")
...             return (await far.receive()).data
>>> asyncio.run(main())
b'hello'

Options, results and errors are the same. Time limits are asyncio's own (``asyncio.timeout``): a call that
is cancelled loses nothing that has arrived. Waiting needs no threads, whatever the number
of associations.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from itertools import islice
from os import PathLike
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from ropewalk import _ropewalk as native
from ropewalk.errors import ClosedError
from ropewalk.net import _options as options
from ropewalk.net._common import BATCH, BaseAssociation, BaseListener, Data
from ropewalk.net._figures import PathEvent, StreamEvent, event_of, stream_event_of
from ropewalk.net._options import Delivery, Extensions, KeyLike, Texts

__all__ = ["Association", "Listener", "connect", "listen"]

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
    """Listen for associations of peers; as :func:`ropewalk.net.listen`. Does not block."""
    secret, allowed = options.listen_key(key, allow, peers, plain)
    ports = options.listen_ports(port, plain)
    places = options.places("addresses", addresses)
    settings = options.socket_options(
        scheduler, congestion, receive_buffer, streams, mtu, profile, plain, **extensions
    )
    return Listener(native.net_listen(places, secret, allowed, peers, settings, ports))


async def connect(
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
    """Open an association; as :func:`ropewalk.net.connect`."""
    ports = options.connect_ports(port, local_port, plain)
    to, secret = options.connect_peer(to, key, peer, peers, plain)
    remotes = [await look_up(*target) for target in options.targets(to)]
    places = options.sources(via, remotes)
    settings = options.socket_options(
        scheduler, congestion, receive_buffer, streams, mtu, profile, plain, **extensions
    )
    opening = native.net_connect(remotes, places, secret, settings, ports, timeout)
    return Association(await finished(opening))


class Listener(BaseListener):
    """Sockets that wait for associations; created by :func:`listen`.

    As a context manager (``async with``) it is closed at the end. ``async for`` gives associations
    until it is closed.
    """

    async def accept(self) -> Association:
        """The next association that a peer has opened.

        Raises
        ------
        ClosedError
            The listener is closed.
        """
        found = await arrived(self._native.take, self._native.arrival)
        if found is None:
            raise ClosedError("the listener is closed")
        return Association(found)

    async def connect(
        self,
        to: Texts | None = None,
        *,
        peer: str | None = None,
        peers: str | PathLike[str] | None = None,
        port: int | None = None,
        local_port: int | None = None,
        timeout: float = 10,
    ) -> Association:
        """Open an association from these sockets; as :meth:`ropewalk.net.Listener.connect`."""
        plain = self.public_key is None
        ports = options.connect_ports(port, local_port, plain)
        to, public = options.further_peer(to, peer, peers, plain)
        remotes = [await look_up(*target) for target in options.targets(to)]
        return Association(await finished(self._native.connect(remotes, public, ports, timeout)))

    async def __aiter__(self) -> AsyncIterator[Association]:
        while not self._native.closed:
            found = await arrived(self._native.take, self._native.arrival)
            if found is None:
                return
            yield Association(found)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class Association(BaseAssociation):
    """Messages to and from a peer; created by :func:`connect` or :meth:`Listener.accept`.

    As a context manager (``async with``) it is shut down at the end, or aborted if an exception leaves
    the block. ``async for`` gives messages until the peer has shut it down.
    """

    async def send(
        self,
        data: Data,
        *,
        stream: int = 0,
        ppid: int = 0,
        **how: Unpack[Delivery],
    ) -> None:
        """Queue a message; waits only while the send buffer is full.

        As :meth:`ropewalk.net.Association.send`. If it is cancelled, the message may have been queued.
        """
        await finished(self._sending([data], stream, ppid, how))

    async def send_all(
        self,
        messages: Iterable[Data],
        *,
        stream: int = 0,
        ppid: int = 0,
        **how: Unpack[Delivery],
    ) -> None:
        """Queue many messages, which is cheaper than one by one."""
        remaining = iter(messages)
        while batch := list(islice(remaining, BATCH)):
            await finished(self._sending(batch, stream, ppid, how))

    async def receive(self) -> native.Message | None:
        """The next message. None: the peer has shut down, and all messages were read.

        Raises
        ------
        ClosedError
            The association did not end in an orderly way.
        """
        message = await arrived(self._native.take, self._native.arrival)
        if message is None:
            self._native.check_end()
        return message

    async def receive_all(self) -> list[native.Message]:
        """All messages that have arrived, at least one. Empty where ``receive`` gives None."""
        first = await self.receive()
        return [] if first is None else [first, *self._native.take_all()]

    async def __aiter__(self) -> AsyncIterator[native.Message]:
        while (message := await self.receive()) is not None:
            yield message

    async def path_event(self) -> PathEvent | None:
        """The next change of a path. None: the association has ended."""
        event = await arrived(self._native.take_path_event, self._native.path_events)
        return None if event is None else event_of(event)

    async def path_events(self) -> AsyncIterator[PathEvent]:
        """Changes of paths as they happen, until the association has ended; for a separate task."""
        while (event := await self.path_event()) is not None:
            yield event

    async def stream_event(self) -> StreamEvent | None:
        """The next event about streams; as :meth:`ropewalk.net.Association.stream_event`."""
        event = await arrived(self._native.take_stream_event, self._native.stream_events)
        return None if event is None else stream_event_of(event)

    async def stream_events(self) -> AsyncIterator[StreamEvent]:
        """Events about streams as they happen, until the association has ended; for a separate task."""
        while (event := await self.stream_event()) is not None:
            yield event

    async def flush(self) -> None:
        """Wait until the peer has acknowledged everything sent; as :meth:`ropewalk.net.Association.flush`."""
        await finished(self._native.flushed())

    async def shutdown(self) -> None:
        """Shut down; as :meth:`ropewalk.net.Association.shutdown`."""
        await finished(self._native.shutdown())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.shutdown()
        else:
            self.abort()


async def finished(work: native.Operation) -> Any:
    """The result of an operation, once it has one."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def done(value: Any, error: BaseException | None) -> None:
        # Called by another thread. A closed loop needs no result.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, value, error)

    at_once = work.start(done)
    if at_once is not None:
        return at_once[0]
    try:
        return await future
    finally:
        work.cancel()


async def arrived(
    take: Callable[[], T | None], arrival: Callable[[], native.Operation]
) -> T | None:
    """The result of `take`, waiting for it; None if nothing more will arrive.

    The task itself takes it, so a cancelled task has taken nothing.
    """
    while (found := take()) is None:
        if not await finished(arrival()):
            return take()
    return found


async def look_up(host: str, port: int) -> str:
    """The address of a host, asking the system for names."""
    known = options.numeric(host, port)
    if known is not None:
        return known
    answers: list[Any] | OSError
    try:
        loop = asyncio.get_running_loop()
        answers = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    except OSError as error:
        answers = error
    return options.first_address(host, port, answers)
