"""aiortc behind a pipe: a peer for tests of data channels. It prints an offer as one line of JSON, reads the answer as one
line of JSON, does what its arguments say, and prints a report. The peer that is made of pion does the same."""

import argparse
import asyncio
import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aioice.ice
from aiortc import RTCDataChannel, RTCPeerConnection, RTCSessionDescription

# Loopback alone: by default aioice offers all other addresses of the machine.
aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]

LIMIT_S = 45
PIECE = 16 << 10


@dataclass
class Report:
    """What became of one channel."""

    channel: RTCDataChannel
    messages: int = 0
    bytes: int = 0
    texts: int = 0
    empty: int = 0
    closed: bool = False
    hash: Any = field(default_factory=hashlib.sha256)

    def document(self) -> dict[str, object]:
        """As the test reads it."""
        channel = self.channel
        return {
            "label": channel.label,
            "protocol": channel.protocol,
            "id": channel.id,
            "ordered": channel.ordered,
            "max_retransmits": channel.maxRetransmits,
            "max_lifetime": channel.maxPacketLifeTime,
            "messages": self.messages,
            "bytes": self.bytes,
            "texts": self.texts,
            "empty": self.empty,
            "sha256": self.hash.hexdigest(),
            "closed": self.closed,
        }


class Peer:
    """All channels of a connection."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.reports: list[Report] = []
        self.changed = asyncio.Condition()
        self.tasks: set[asyncio.Task[None]] = set()

    def notify(self) -> None:
        """Wakes those that wait."""

        async def notify() -> None:
            async with self.changed:
                self.changed.notify_all()

        task = asyncio.ensure_future(notify())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def wait(self, holds: Callable[[], bool]) -> None:
        """Waits until something holds."""
        async with self.changed:
            await self.changed.wait_for(holds)

    def follow(self, channel: RTCDataChannel, *, echo: bool) -> Report:
        """Records what happens on a channel, and sends its messages back."""
        report = Report(channel)
        self.reports.append(report)

        @channel.on("message")
        def on_message(message: str | bytes) -> None:
            if echo:
                channel.send(message)
            data = message.encode() if isinstance(message, str) else message
            report.messages += 1
            report.bytes += len(data)
            report.texts += isinstance(message, str)
            report.empty += not data
            report.hash.update(data)
            self.notify()

        @channel.on("close")
        def on_close() -> None:
            report.closed = True
            self.notify()

        channel.on("open", self.notify)
        return report

    async def send_file(self, channel: RTCDataChannel) -> None:
        """Sends bytes that everybody can compute, no more at a time than it has to."""
        low = asyncio.Event()
        channel.bufferedAmountLowThreshold = 4 * PIECE
        channel.on("bufferedamountlow", low.set)
        for start in range(0, self.size, PIECE):
            piece = range(start, min(start + PIECE, self.size))
            low.clear()
            channel.send(bytes((at * 31 >> 3) & 255 for at in piece))
            if channel.bufferedAmount > 8 * PIECE:
                await low.wait()


async def negotiate(connection: RTCPeerConnection, lines: asyncio.StreamReader) -> None:
    """Makes an offer and takes the answer."""
    await connection.setLocalDescription(await connection.createOffer())
    print(json.dumps(connection.localDescription.sdp), flush=True)
    answer = json.loads(await lines.readline())
    await connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))


async def standard_input() -> asyncio.StreamReader:
    """Lines of the other end."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def run(size: int, *, closes: bool) -> None:
    """From the offer to the report."""
    peer, connection, lines = Peer(size), RTCPeerConnection(), await standard_input()
    connection.on("datachannel", lambda channel: peer.follow(channel, echo=True))
    own = {
        "file": connection.createDataChannel("file"),
        "unordered": connection.createDataChannel("unordered", ordered=False),
        "once": connection.createDataChannel("once", ordered=False, maxRetransmits=0),
        "timed": connection.createDataChannel("timed", maxPacketLifeTime=500),
    }
    reports = {label: peer.follow(channel, echo=False) for label, channel in own.items()}
    await negotiate(connection, lines)
    await peer.wait(lambda: all(channel.readyState == "open" for channel in own.values()))
    sending = asyncio.ensure_future(peer.send_file(own["file"]))
    for number in range(100):
        own["unordered"].send(f"text {number}")
        own["once"].send(bytes([number]))
        own["timed"].send(bytes(number))
    await sending
    # The other end sends the whole file back.
    await peer.wait(lambda: reports["file"].bytes == size and reports["unordered"].messages == 100)
    print("received", flush=True)
    if closes:
        for report in peer.reports:
            report.channel.close()
    await peer.wait(lambda: all(report.closed for report in peer.reports))
    print(json.dumps([report.document() for report in peer.reports]), flush=True)
    # The other end ends the input once its channels are closed as well.
    await lines.read()
    await connection.close()


def main() -> None:
    """Reads the arguments."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, default=1 << 20)
    parser.add_argument("--close", choices=["true", "false"], default="false")
    args = parser.parse_args()
    asyncio.run(asyncio.wait_for(run(args.bytes, closes=args.close == "true"), LIMIT_S))


main()
