"""The links between two hosts, each with a NAT at the near end: a program that moves packets between TUN devices.

It is started by `Links` with two files for each link, reads one JSON command per line on standard input, and answers
`{"ask": "counts"}` with one line on standard output. It does not inspect the content of packets.
"""

import heapq
import json
import os
import random
import select
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

UDP = 17
IPV4_HEADER = 20
QUEUE_S = 0.2
"""A packet that would wait longer than this for the link is dropped."""
READ_AT_ONCE = 64
FIRST_PORT = 20_000
FIRST_ADDRESS = 100
"""Last byte of the first address that the NAT uses outside."""


def near_address(link: int, last: int = 1) -> str:
    return f"10.80.{link}.{last}"


def far_address(link: int) -> str:
    return f"10.80.{link}.2"


def header_checksum(packet: bytearray) -> None:
    packet[10:12] = b"\0\0"
    total = sum(struct.unpack_from("!10H", packet))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into("!H", packet, 10, total ^ 0xFFFF)


class Nat:
    """Rewrites the near end's address and port, as a home router does."""

    def __init__(self) -> None:
        self.outside: dict[bytes, bytes] = {}
        self.inside: dict[bytes, bytes] = {}
        self.next_port = FIRST_PORT
        self.address = FIRST_ADDRESS

    def rebind(self, new_address: bool) -> None:
        """Forgets all mappings: later packets have other source ports, or another source address as well."""
        self.outside.clear()
        self.inside.clear()
        if new_address:
            self.address = FIRST_ADDRESS + (self.address - FIRST_ADDRESS + 1) % 100

    def outgoing(self, packet: bytearray) -> bool:
        own = bytes(packet[12:16] + packet[20:22])
        mapped = self.outside.get(own)
        if mapped is None:
            mapped = own[:3] + struct.pack("!BH", self.address, self.next_port)
            self.next_port += 1
            self.outside[own] = mapped
            self.inside[mapped] = own
        packet[12:16], packet[20:22] = mapped[:4], mapped[4:]
        return True

    def incoming(self, packet: bytearray) -> bool:
        own = self.inside.get(bytes(packet[16:20] + packet[22:24]))
        if own is None:
            return False
        packet[16:20], packet[22:24] = own[:4], own[4:]
        return True


@dataclass
class Way:
    """One direction of a link: since when it is busy, and until when."""

    out: int
    busy_until: float = 0.0


@dataclass
class Link:
    """The present effects of a link on packets. Shares are probabilities per packet."""

    rate: float
    delay: float
    loss: float
    ways: dict[int, Way]
    outgoing: int
    nat: Nat = field(default_factory=Nat)
    cut: bool = False
    reorder: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0


class Network:
    """All links, and the packets in transit."""

    def __init__(self, links: list[Link], seed: str) -> None:
        self.links = links
        self.random = random.Random(seed)
        self.flying: list[tuple[float, int, int, bytes]] = []
        self.sequence = 0
        self.unread = b""
        self.counts = dict.fromkeys(
            ["carried", "cut", "lost", "overflowed", "unmapped", "reordered", "duplicated", "corrupted"], 0
        )

    def come(self, link: Link, file: int, data: bytes, now: float) -> None:
        """A packet has come out of a device."""
        if len(data) < IPV4_HEADER + 8 or data[0] != 0x45 or data[9] != UDP:
            return
        if struct.unpack_from("!H", data, 6)[0] & 0x3FFF:
            return  # A fragment: a NAT of this kind has no ports for it.
        if link.cut:
            self.counts["cut"] += 1
            return
        if self.random.random() < link.loss:
            self.counts["lost"] += 1
            return
        packet = bytearray(data)
        translate = link.nat.outgoing if file == link.outgoing else link.nat.incoming
        if not translate(packet):
            self.counts["unmapped"] += 1
            return
        # UDP's own checksum is switched off (RFC 768): changed bits reach the program.
        packet[26:28] = b"\0\0"
        header_checksum(packet)
        self.impair(link, link.ways[file], packet, now)

    def impair(self, link: Link, way: Way, packet: bytearray, now: float) -> None:
        if self.random.random() < link.corrupt and len(packet) > IPV4_HEADER + 8:
            self.counts["corrupted"] += 1
            packet[self.random.randrange(IPV4_HEADER + 8, len(packet))] ^= 1 << self.random.randrange(8)
        copies = 1
        if self.random.random() < link.duplicate:
            self.counts["duplicated"] += 1
            copies = 2
        for _ in range(copies):
            begins = max(now, way.busy_until)
            if begins - now > QUEUE_S:
                self.counts["overflowed"] += 1
                return
            way.busy_until = begins + len(packet) * 8 / link.rate
            due = way.busy_until + link.delay
            if self.random.random() < link.reorder:
                self.counts["reordered"] += 1
                due += self.random.uniform(0.001, 0.05)
            self.sequence += 1
            heapq.heappush(self.flying, (due, self.sequence, way.out, bytes(packet)))

    def deliver(self, now: float) -> None:
        while self.flying and self.flying[0][0] <= now:
            _, _, out, packet = heapq.heappop(self.flying)
            try:
                os.write(out, packet)
                self.counts["carried"] += 1
            except OSError:
                self.counts["lost"] += 1  # The device is down.

    def obey(self, command: dict[str, Any]) -> None:
        if "ask" in command:
            print(json.dumps(self.counts), flush=True)
            return
        link = self.links[command["link"] - 1]
        if "rebind" in command:
            link.nat.rebind(command["rebind"] == "address")
        for name in ("cut", "reorder", "duplicate", "corrupt"):
            if name in command:
                setattr(link, name, command[name])

    def run(self) -> None:
        """Moves packets until standard input ends."""
        poll = select.epoll()
        poll.register(sys.stdin.fileno(), select.EPOLLIN | select.EPOLLHUP)
        devices = {file: link for link in self.links for file in link.ways}
        for file in devices:
            poll.register(file, select.EPOLLIN)
        while True:
            wait = max(0.0, self.flying[0][0] - time.monotonic()) if self.flying else -1
            for file, _ in poll.poll(wait):
                if file == sys.stdin.fileno():
                    said = os.read(file, 1 << 16)
                    if not said:
                        return
                    *lines, self.unread = (self.unread + said).split(b"\n")
                    for line in lines:
                        self.obey(json.loads(line))
                else:
                    self.read(devices[file], file)
            self.deliver(time.monotonic())

    def read(self, link: Link, file: int) -> None:
        for _ in range(READ_AT_ONCE):
            try:
                data = os.read(file, 2048)
            except BlockingIOError:
                return
            except OSError:
                return  # The device is down.
            self.come(link, file, data, time.monotonic())


class Links:
    """Starts and controls the program above."""

    def __init__(self, links: list[dict[str, Any]], seed: str, log: Path) -> None:
        files = [file for link in links for file in (link["near"], link["far"])]
        words = [sys.executable, Path(__file__).resolve(), json.dumps({"links": links, "seed": seed})]
        self.log = log.open("wb")
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            [str(word) for word in words],
            pass_fds=files,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
        )

    def tell(self, **command: Any) -> None:
        assert self.process.stdin
        with self.lock:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()

    def counts(self) -> dict[str, int]:
        self.tell(ask="counts")
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def stop(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(timeout=10)
        self.log.close()


def main() -> None:
    plan = json.loads(sys.argv[1])
    links = []
    for each in plan["links"]:
        near, far = each["near"], each["far"]
        ways = {near: Way(far), far: Way(near)}
        links.append(Link(each["rate"], each["delay"], each["loss"], ways, outgoing=near))
    Network(links, plan["seed"]).run()


if __name__ == "__main__":
    main()
