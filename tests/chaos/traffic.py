"""Connections through a proxy whose every byte is known in advance, and the server behind the exit.

    traffic.py serve PORT [DEFECT]   answers, and prints one JSON line per connection whose bytes were wrong
    traffic.py run SOCKS PORT SEED   connects again and again until standard input ends, one JSON line per connection

A request is a line `NUMBER UP DOWN`: so many bytes follow, and so many come back, then the SHA-256 of those that followed.
"""

import asyncio
import hashlib
import json
import random
import struct
import sys
import threading
import time

WORKERS = 3
BLOCK = 1 << 16
LARGEST = 2_000_000
IDLE_S = 60.0
"""A connection without progress for this long counts as hung."""


def content(name: str, size: int) -> bytes:
    return random.Random(name).randbytes(size)


def say(**document: object) -> None:
    print(json.dumps(document), flush=True)


class Wrong(Exception):
    """The connection carried bytes that were not sent."""


async def read_checked(reader: asyncio.StreamReader, expected: bytes) -> None:
    """Reads exactly these bytes."""
    at = 0
    while at < len(expected):
        some = await asyncio.wait_for(reader.read(min(BLOCK, len(expected) - at)), IDLE_S)
        if not some:
            raise ConnectionError(f"it ended after {at} of {len(expected)} bytes")
        if some != expected[at : at + len(some)]:
            raise Wrong(f"other bytes than those that were sent, between {at} and {at + len(some)}")
        at += len(some)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, defect: bool) -> None:
    sending = None
    try:
        name, up, down = (await asyncio.wait_for(reader.readline(), IDLE_S)).split()
        answer = bytearray(content(f"{name.decode()}/down", int(down)))
        if defect:
            answer[-1] ^= 1
        sending = asyncio.create_task(send(writer, bytes(answer)))
        uploaded = content(f"{name.decode()}/up", int(up))
        await read_checked(reader, uploaded)
        if await asyncio.wait_for(reader.read(1), IDLE_S):
            raise Wrong(f"more than the {up.decode()} bytes that were sent")
        await sending
        writer.write(hashlib.sha256(uploaded).digest())
        await writer.drain()
    except Wrong as wrong:
        say(outcome="wrong", side="server", why=str(wrong))
    except (OSError, ValueError, asyncio.TimeoutError, asyncio.IncompleteReadError):
        pass  # The client tells how its connection ended.
    finally:
        await drop(sending)
        writer.close()


async def drop(sending: asyncio.Task[None] | None) -> None:
    """Ends the sender of a connection that is over; its result no longer matters."""
    if sending:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def send(writer: asyncio.StreamWriter, data: bytes) -> None:
    for at in range(0, len(data), BLOCK):
        writer.write(data[at : at + BLOCK])
        await asyncio.wait_for(writer.drain(), IDLE_S)


async def connection(socks: int, port: int, name: str, up: int, down: int) -> None:
    """One connection by SOCKS 5 (RFC 1928) to the server, checked to its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", socks)
    sending = None
    try:
        writer.write(b"\x05\x01\x00" + b"\x05\x01\x00\x01\x7f\x00\x00\x01" + struct.pack("!H", port))
        if await asyncio.wait_for(reader.readexactly(2), IDLE_S) != b"\x05\x00":
            raise ConnectionError("the proxy wants something else")
        answer = await asyncio.wait_for(reader.readexactly(10), IDLE_S)
        if answer[1] != 0:
            raise ConnectionError(f"SOCKS error {answer[1]}")
        uploaded = content(f"{name}/up", up)
        writer.write(f"{name} {up} {down}\n".encode())
        sending = asyncio.create_task(upload(writer, uploaded))
        await read_checked(reader, content(f"{name}/down", down))
        await read_checked(reader, hashlib.sha256(uploaded).digest())
        await sending
        if await asyncio.wait_for(reader.read(1), IDLE_S):
            raise Wrong("more bytes than were sent")
    finally:
        await drop(sending)
        writer.close()


async def upload(writer: asyncio.StreamWriter, data: bytes) -> None:
    await send(writer, data)
    writer.write_eof()


async def worker(number: int, socks: int, port: int, seed: str, ending: threading.Event) -> None:
    source = random.Random(f"{seed}/connections/{number}")
    count = 0
    while not ending.is_set():
        count += 1
        up, down = (int(LARGEST ** source.random()) for _ in range(2))
        began = time.time()
        outcome, why = "whole", ""
        try:
            await connection(socks, port, f"{seed}-{number}-{count}", up, down)
        except Wrong as wrong:
            outcome, why = "wrong", str(wrong)
        except asyncio.TimeoutError:
            outcome, why = "hung", f"nothing happened for {IDLE_S} s"
        except (OSError, asyncio.IncompleteReadError) as error:
            outcome, why = "broken", str(error) or type(error).__name__
        size = up + down if outcome == "whole" else 0
        say(outcome=outcome, side="client", why=why, began=began, ended=time.time(), bytes=size)
        await asyncio.sleep(0.2 if outcome == "whole" else 1.0)


async def run(socks: int, port: int, seed: str) -> None:
    ending = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ending.set()), daemon=True).start()
    await asyncio.gather(*(worker(number, socks, port, seed, ending) for number in range(WORKERS)))


async def listen(port: int, defect: bool) -> None:
    """Every answer of a defective server has one wrong bit: the check must find it."""
    server = await asyncio.start_server(lambda reader, writer: serve(reader, writer, defect), "127.0.0.1", port)
    async with server:
        say(outcome="ready", side="server")
        await server.serve_forever()


def main() -> None:
    match sys.argv[1:]:
        case ["serve", port, *defect]:
            asyncio.run(listen(int(port), bool(defect)))
        case ["run", socks, port, seed]:
            asyncio.run(run(int(socks), int(port), seed))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
