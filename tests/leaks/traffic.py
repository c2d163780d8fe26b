"""Programs that send all the time, servers that answer them, and probes that use machines as routers.

    traffic.py send                 on the client
    traffic.py serve                on the internet; reads `silent` or `answer` for the name servers, a line each
    traffic.py probe FILE,...       frames by these packet sockets: l1, l2, hub, neighbour, private

Payloads begin with MAGIC and a letter that says who sent them first: c the client, n the neighbour, i the internet by the
client's links, p the private host by the hub, q the internet by the hub. Answers of the servers have the letter R.
"""

import ipaddress
import os
import selectors
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from machines import HUB, HUB_NAME, INNER, L1, L2, LAN, NAME_SERVERS, PRIV, PRIVATE, SERVERS, WAN, Link

MAGIC = b"RWLK"
ECHO, WEB, DOMAIN, INSIDE = 7, 80, 53, 7777
TICK_S = 0.004
PROBE_TICK_S = 0.02
RETRY_S = 0.1
"""How soon a socket is opened again that could not be opened."""
SLOW = 10
"""TCP connections are opened at each tick of this number."""
OPEN_CONNECTIONS = 50
OWN_PORTS = range(600, 900)
"""Programs connect from these to the hub's port 80, where the tunnel itself looks for captive portals from others."""
UDP, TCP, ICMP, ICMPV6, GRE, SCTP, TESTING = 17, 6, 1, 58, 47, 132, 253


def question(name: str) -> bytes:
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return struct.pack("!6H", 0x5257, 0x0100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1"


# ---- Programs of the client.


@dataclass
class Flow:
    """A socket that sends a datagram at each tick. A failed send does not end it, because programs try again."""

    make: Callable[[], socket.socket]
    to: tuple | None
    """Destination, unless the socket is connected."""
    payload: bytes
    opened: socket.socket | None = None
    not_before: float = 0.0

    def send(self, now: float) -> None:
        try:
            if self.opened is None:
                if now < self.not_before:
                    return
                self.not_before = now + RETRY_S
                self.opened = self.make()
                self.opened.setblocking(False)
            if self.to:
                self.opened.sendto(self.payload, self.to)
            else:
                self.opened.send(self.payload)
        except OSError:
            pass


def opened(family: int, kind: int, protocol: int = 0, device: str = "", at: tuple | None = None, connect: tuple | None = None):
    """Opens sockets that are bound to a device or an address, or connected, if that is given."""

    def make() -> socket.socket:
        new = socket.socket(family, kind, protocol)
        try:
            if device:
                new.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
            if at:
                new.bind(at)
            if connect:
                new.connect(connect)
        except OSError:
            new.close()
            raise
        return new

    return make


def flows() -> Iterator[Flow]:
    mine, four, six, datagram, raw = MAGIC + b"c", socket.AF_INET, socket.AF_INET6, socket.SOCK_DGRAM, socket.SOCK_RAW
    echo = struct.pack("!BBHHH", 8, 0, 0, 0x5257, 1)
    echo = echo[:2] + struct.pack("!H", checksum(echo + mine)) + echo[4:] + mine
    servers = [(address, ECHO) for address in SERVERS]
    udp = opened(four, datagram)
    # Servers, networks elsewhere, the neighbour, other ports of hosts that may be reached, multicast and broadcast.
    broadcast = (LAN.networks[0].replace(".0/24", ".255"), ECHO)
    for to in (servers[0], (PRIVATE[0], ECHO), ("10.20.30.40", ECHO), (LAN.far_addresses[0], ECHO), (HUB, ECHO), (NAME_SERVERS[0], ECHO)):
        yield Flow(udp, to, mine)
    yield Flow(opened(four, datagram, device=L1.device), ("224.0.0.251", 5353), mine)
    yield Flow(broadcasting, broadcast, mine)
    for server, family in zip(NAME_SERVERS, (four, six), strict=True):
        yield Flow(opened(family, datagram), (server, DOMAIN), question("secret.example.org"))
    # Sockets with a link or an address of one, and connected ones, which remember their route.
    yield Flow(opened(four, datagram, device=L1.device), servers[1], mine)
    yield Flow(opened(four, datagram, device=L2.device), servers[1], mine)
    yield Flow(opened(four, datagram, at=(L2.addresses[0], 0)), servers[1], mine)
    yield Flow(opened(four, datagram, connect=servers[1]), None, mine)
    yield Flow(opened(six, datagram, connect=servers[2]), None, mine)
    yield Flow(opened(six, datagram), servers[2], mine)
    yield Flow(opened(six, datagram, device=L2.device), servers[2], mine)
    yield Flow(opened(six, datagram), (PRIVATE[1], ECHO), mine)
    yield Flow(opened(six, datagram, device=L1.device), ("ff02::fb", 5353), mine)
    for to in (SERVERS[0], HUB):
        yield Flow(opened(four, raw, ICMP), (to, 0), echo)
    yield Flow(opened(six, raw, ICMPV6), (SERVERS[2], 0), bytes([128]) + echo[1:])
    for protocol in (SCTP, GRE, TESTING):
        yield Flow(opened(four, raw, protocol), (SERVERS[0], 0), bytes(8) + mine)
        yield Flow(opened(six, raw, protocol), (SERVERS[2], 0), bytes(8) + mine)


def broadcasting() -> socket.socket:
    new = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    new.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    return new


class Connections:
    """Opens TCP connections all the time, and sends on one that stays open."""

    def __init__(self) -> None:
        self.open: deque[socket.socket] = deque()
        self.lasting: socket.socket | None = None

    def tick(self, number: int) -> None:
        if number % SLOW == 0:
            targets = [(SERVERS[0], WEB), (SERVERS[2], WEB), (HUB, 22), (NAME_SERVERS[0], DOMAIN)]
            for to in targets:
                self.open.append(connecting(to))
            self.open.append(connecting((HUB, WEB), OWN_PORTS[number // SLOW % len(OWN_PORTS)]))
            while len(self.open) > OPEN_CONNECTIONS:
                self.open.popleft().close()
        try:
            self.lasting = self.lasting or connecting((SERVERS[0], WEB))
            self.lasting.send(MAGIC)
        except BlockingIOError:
            pass
        except OSError:
            if self.lasting and number % SLOW == 0:
                self.lasting.close()
                self.lasting = None


def connecting(to: tuple[str, int], port: int = 0) -> socket.socket:
    """A TCP socket that connects, from this port if it is not 0."""
    new = socket.socket(socket.AF_INET6 if ":" in to[0] else socket.AF_INET, socket.SOCK_STREAM)
    new.setblocking(False)
    if port:
        new.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        new.bind(("", port))
    new.connect_ex(to)
    return new


def send() -> None:
    """Sends for ever. Prints a line for each datagram that arrived through the tunnel from outside."""
    all_flows, connections = list(flows()), Connections()
    ear = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    ear.bind(("::", INSIDE))
    ear.setblocking(False)
    number, due = 0, time.monotonic()
    while True:
        now = time.monotonic()
        for flow in all_flows:
            flow.send(now)
        connections.tick(number)
        try:
            while datagram := ear.recv(64):
                print(datagram[len(MAGIC) :][:1].decode(), flush=True)
        except OSError:
            pass
        number, due = number + 1, max(due + TICK_S, now)
        time.sleep(max(0.0, due - time.monotonic()))


# ---- Servers.


def answer_to(query: bytes) -> bytes:
    """The hub's address if that is what the query is for; otherwise there is no such name."""
    known = query[12:].startswith(question(HUB_NAME)[12:-4])
    end = query.find(b"\0", 12) + 5
    is_ipv4 = query[end - 4 : end - 2] == b"\0\1"
    record = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 1, 4) + socket.inet_aton(HUB) if known and is_ipv4 else b""
    return query[:2] + struct.pack("!5H", 0x8180 if known else 0x8183, 1, bool(record), 0, 0) + query[12:end] + record


def serve() -> None:
    """Echo, TCP and name servers."""
    selector = selectors.DefaultSelector()
    for address, port, kind in [
        *((address, ECHO, socket.SOCK_DGRAM) for address in SERVERS),
        *((address, DOMAIN, socket.SOCK_DGRAM) for address in NAME_SERVERS),
        *((address, WEB, socket.SOCK_STREAM) for address in SERVERS),
    ]:
        new = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
        new.bind((address, port))
        new.setblocking(False)
        if kind == socket.SOCK_STREAM:
            new.listen(128)
        selector.register(new, selectors.EVENT_READ, port)
    selector.register(sys.stdin.fileno(), selectors.EVENT_READ, 0)
    is_silent = False
    while True:
        for key, _ in selector.select():
            if key.data == 0:
                said = os.read(key.fd, 4096).decode().split()
                if not said:
                    return
                is_silent = said[-1] == "silent"
                continue
            try:
                handle(selector, key, is_silent)
            except OSError:
                pass


def handle(selector: selectors.BaseSelector, key: selectors.SelectorKey, is_silent: bool) -> None:
    """Answers what has arrived at one socket."""
    here = key.fileobj
    assert isinstance(here, socket.socket)
    if key.data == WEB:
        selector.register(here.accept()[0], selectors.EVENT_READ, -1)
    elif key.data == -1:
        try:
            is_over = not here.recv(4096)
        except OSError:
            is_over = True
        if is_over:
            selector.unregister(here)
            here.close()
    else:
        data, sender = here.recvfrom(4096)
        if key.data == ECHO:
            here.sendto(MAGIC + b"R" + data[len(MAGIC) :], sender)
        elif not is_silent:
            here.sendto(answer_to(data), sender)


# ---- Probes: frames to a machine that would have to forward them.


def checksum(data: bytes) -> int:
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def packet(source: str, to: str, protocol: int, body: bytes, at: int | None) -> bytes:
    """An IP packet. `at`: where the checksum of the body is, which covers the addresses."""
    own, other = ipaddress.ip_address(source), ipaddress.ip_address(to)
    if at is not None:
        pseudo = own.packed + other.packed + struct.pack("!II", len(body), protocol)
        body = body[:at] + struct.pack("!H", checksum(pseudo + body)) + body[at + 2 :]
    if own.version == 6:
        return struct.pack("!IHBB", 6 << 28, len(body), protocol, 64) + own.packed + other.packed + body
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 1, 0, 64, protocol, 0) + own.packed + other.packed
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + body


def datagram(source: str, to: str, letter: bytes, port: int = ECHO) -> bytes:
    payload = MAGIC + letter
    return packet(source, to, UDP, struct.pack("!4H", 40_000, port, 8 + len(payload), 0) + payload, 6)


def opening(source: str, to: str) -> bytes:
    return packet(source, to, TCP, struct.pack("!HHIIBBHHH", 40_001, 22, 1, 0, 0x50, 2, 1024, 0, 0), 16)


def ping(source: str, to: str, letter: bytes) -> bytes:
    body = struct.pack("!BBHHH", 8, 0, 0, 1, 1) + MAGIC + letter
    if ":" in source:
        return packet(source, to, ICMPV6, bytes([128]) + body[1:], 2)
    return packet(source, to, ICMP, body[:2] + struct.pack("!H", checksum(body)) + body[4:], None)


def encapsulated(source: str, to: str, letter: bytes) -> bytes:
    return packet(source, to, GRE, bytes(4) + MAGIC + letter, None)


def frame(source: str, to: str, what: bytes) -> bytes:
    kind = b"\x86\xdd" if what[0] >> 4 == 6 else b"\x08\x00"
    return bytes.fromhex(to.replace(":", "") + source.replace(":", "")) + kind + what


def by_link(link: Link, other: Link) -> list[bytes]:
    """What the internet sends to the client by one of its links."""
    packets = []
    for family in (0, 1):
        source, own, inner = link.far_addresses[family], link.addresses[family], INNER[family]
        server = SERVERS[2 * family]
        packets += [datagram(source, to, b"i") for to in (own, inner, LAN.far_addresses[family], other.far_addresses[family])]
        packets += [datagram(server, to, b"i") for to in (own, LAN.far_addresses[family])]
        packets += [datagram(source, server, b"i"), opening(source, own), opening(source, inner)]
        packets += [ping(source, own, b"i"), ping(source, inner, b"i"), encapsulated(source, LAN.far_addresses[family], b"i")]
    return [frame(link.far_mac, link.mac, one) for one in packets]


def by_hub(source: tuple[str, str], targets: list[tuple[str, str]], letter: bytes, far_mac: str, mac: str) -> list[bytes]:
    packets = []
    for family in (0, 1):
        for to in targets:
            packets += [datagram(source[family], to[family], letter, INSIDE), encapsulated(source[family], to[family], letter)]
    return [frame(far_mac, mac, one) for one in packets]


def from_neighbour() -> list[bytes]:
    packets = []
    for family in (0, 1):
        source, server = LAN.far_addresses[family], SERVERS[2 * family]
        targets = (server, PRIVATE[family], L1.far_addresses[family], L2.far_addresses[family], INNER[family])
        packets += [datagram(source, to, b"n") for to in targets]
        packets += [encapsulated(source, server, b"n"), ping(source, server, b"n"), opening(source, server)]
    return [frame(LAN.far_mac, LAN.mac, one) for one in packets]


def probe(files: list[int]) -> None:
    """Sends all probes again and again."""
    servers = (SERVERS[0], SERVERS[2])
    frames = [
        by_link(L1, L2),
        by_link(L2, L1),
        by_hub(WAN.far_addresses, [PRIVATE, INNER], b"q", WAN.far_mac, WAN.mac),
        from_neighbour(),
        by_hub(PRIVATE, [servers, INNER], b"p", PRIV.far_mac, PRIV.mac),
    ]
    sockets = [socket.socket(fileno=file) for file in files]
    while True:
        for out, some in zip(sockets, frames, strict=True):
            for one in some:
                try:
                    out.send(one)
                except OSError:
                    pass
        time.sleep(PROBE_TICK_S)


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send()
    elif sys.argv[1] == "serve":
        serve()
    else:
        probe([int(file) for file in sys.argv[2].split(",")])
