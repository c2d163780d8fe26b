"""The sockets under asyncio."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ropewalk import net
from ropewalk.net import aio

LOOPBACK = "127.0.0.1:0"


@asynccontextmanager
async def pair(**options: Any) -> AsyncIterator[tuple[aio.Association, aio.Association]]:
    async with aio.listen(LOOPBACK, **options) as listener:
        near = await aio.connect(listener.addresses, peer=listener.public_key, **options)
        far = await listener.accept()
        try:
            yield near, far
        finally:
            near.abort()
            far.abort()


async def echo(listener: aio.Listener, count: int) -> None:
    """Echoes messages on this many associations until each is shut down."""

    async def answer(far: aio.Association) -> None:
        async with far:
            async for message in far:
                await far.send(message.data, stream=message.stream, ppid=message.ppid)

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(answer(await listener.accept()))


async def ask(listener: aio.Listener, plain: bool, count: int) -> None:
    """Sends messages and receives the answers at the same time."""
    peer = listener.public_key
    async with await aio.connect(listener.addresses, peer=peer, plain=plain) as near:

        async def questions() -> None:
            for i in range(count):
                await near.send(i.to_bytes(4, "big") * (1 + i % 500), ppid=i)

        asking = asyncio.create_task(questions())
        for i in range(count):
            message = await near.receive()
            assert message is not None and message.ppid == i
            assert message.data == i.to_bytes(4, "big") * (1 + i % 500)
        await asking


@pytest.mark.parametrize("plain", [False, True])
def test_a_thousand_messages_are_echoed(plain: bool) -> None:
    async def main() -> None:
        async with aio.listen(LOOPBACK, plain=plain) as listener, asyncio.timeout(60):
            await asyncio.gather(echo(listener, 1), ask(listener, plain, 1000))

    asyncio.run(main())


def test_many_associations_wait_at_once_without_a_thread_for_each() -> None:
    async def main() -> None:
        async with aio.listen(LOOPBACK) as listener, asyncio.timeout(60):
            await asyncio.gather(echo(listener, 50), *(ask(listener, False, 20) for _ in range(50)))

    asyncio.run(main())


def test_a_cancelled_wait_loses_no_message_and_keeps_the_order() -> None:
    async def main() -> None:
        async with pair() as (near, far), asyncio.timeout(60):
            received: list[bytes] = []
            sending = asyncio.create_task(near.send_all(bytes([i]) for i in range(200)))
            misses = 0
            while len(received) < 200:
                try:
                    async with asyncio.timeout(0.0002):
                        message = await far.receive()
                        assert message is not None
                        received.append(message.data)
                except TimeoutError:
                    misses += 1
            await sending
            assert received == [bytes([i]) for i in range(200)]
            for i in range(20):
                waiting = asyncio.create_task(far.receive())
                await asyncio.sleep(0)
                await near.send(bytes([i]))
                await asyncio.sleep(0.001 * (i % 3))
                waiting.cancel()
                [taken] = await asyncio.gather(waiting, return_exceptions=True)
                if isinstance(taken, asyncio.CancelledError):
                    taken = await far.receive()
                assert isinstance(taken, net.Message) and taken.data == bytes([i])

    asyncio.run(main())


def test_errors_and_limits_are_those_of_the_blocking_calls() -> None:
    async def main() -> None:
        async with aio.listen(LOOPBACK) as listener:
            wrong = net.generate_key().public
            with pytest.raises(net.ConnectError, match="does not answer"):
                await aio.connect(listener.addresses, peer=wrong, timeout=0.5)
            with pytest.raises(net.OptionError, match="no.such.name.invalid"):
                await aio.connect("no.such.name.invalid", plain=True)
        with pytest.raises(net.ClosedError, match="closed"):
            await listener.accept()
        async with pair() as (near, far):
            far.abort()
            with pytest.raises(net.ClosedError, match="aborted"):
                await near.receive()

    asyncio.run(main())


def test_a_listener_gives_associations_until_it_is_closed() -> None:
    async def main() -> None:
        async with aio.listen(LOOPBACK) as listener, asyncio.timeout(60):

            async def connect_once() -> None:
                for _ in range(3):
                    near = await aio.connect(listener.addresses, peer=listener.public_key)
                    # Closing the listener aborts associations that have not been accepted.
                    assert (message := await near.receive()) and message.data == b"taken"
                    await near.shutdown()
                listener.close()

            connecting = asyncio.create_task(connect_once())
            count = 0
            async for far in listener:
                await far.send(b"taken")
                assert await far.receive() is None
                count += 1
            await connecting
            assert count == 3

    asyncio.run(main())


def test_a_listener_that_was_closed_in_between_is_at_its_end() -> None:
    with net.listen(LOOPBACK) as listener:
        native = listener._native
        waiting = native.arrival()
    # As if another task closed it between the check and the wait: the wait ends without an error.
    assert [work.wait(60) for work in (waiting, native.arrival())] == [False, False]


def test_both_flavours_have_the_same_names_and_options() -> None:
    for name in ("listen", "connect"):
        blocking, awaited = (inspect.signature(getattr(one, name)) for one in (net, aio))
        assert list(blocking.parameters.values()) == list(awaited.parameters.values())
        kinds = [p.kind for p in awaited.parameters.values()]
        by_name = {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}
        assert set(kinds[1:]) <= by_name
    for kind in ("Listener", "Association"):
        names = [
            {name for name in dir(getattr(one, kind)) if not name.startswith("_")}
            for one in (net, aio)
        ]
        assert names[0] == names[1]
        for name in names[0]:
            assert inspect.getdoc(getattr(getattr(aio, kind), name)), name


def test_events_about_streams_come_to_a_task_of_their_own() -> None:
    async def main() -> list[net.StreamEvent]:
        options = {"reconfiguration": True, "accepted_requests": ["add-streams"], "streams": 3}
        async with pair(**options) as (near, far):
            before = asyncio.create_task(anext(aiter(far.stream_events())))
            near.add_streams(outgoing=1)
            found = [await before]
            near.reset_streams()
            async with asyncio.timeout(10):
                async for event in near.stream_events():
                    found.append(event)
                    if event.kind == "streams-reset":
                        break
                await near.shutdown()
                assert await near.stream_event() is None
            return found

    assert asyncio.run(main()) == [
        net.StreamEvent("streams-added", "performed", None, (), 0, 1),
        net.StreamEvent("streams-added", "performed", None, (), 1, 0),
        net.StreamEvent("streams-reset", "denied", "outgoing", (), 0, 0),
    ]


def test_an_address_is_added_and_the_event_is_awaited() -> None:
    async def scenario() -> None:
        options: dict[str, Any] = {"plain": True, "address_reconfiguration": True}
        async with aio.listen(LOOPBACK, **options) as listener:
            near = await aio.connect(listener.addresses, via="127.0.0.1", **options)
            async with near, asyncio.timeout(10):
                near.add_address("127.0.0.2")
                async for event in near.path_events():
                    if event.kind == "own-address-added":
                        assert (event.address, event.refusal) == ("127.0.0.2", None)
                        break

    asyncio.run(scenario())
