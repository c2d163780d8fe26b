"""Watches the ends of links outside of the client and the hub, and judges each frame that comes out of them."""

import ipaddress
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from machines import CLIENT_LINKS, HUB, HUB_NAME, HUB_PORT, LAN, NAME_SERVERS, NO_NAME, L1, L2, PRIV, WAN, Machine, World
from traffic import DOMAIN, GRE, ICMP, ICMPV6, MAGIC, OWN_PORTS, TCP, UDP, WEB, question

SO_TIMESTAMPNS = 35
SO_RCVBUFFORCE = 33
PACKET_OUTGOING = 4
PACKET_STATISTICS = 6
SOL_PACKET = 263
ALL_FRAMES = 0x0003
QUEUE = 16 << 20
LARGEST, KEPT = 1 << 16, 192
"""Bytes of a frame that are read, and that are kept."""
IPV4, IPV6, ARP = 0x0800, 0x86DD, 0x0806
IGMP, HOP_BY_HOP = 2, 0
ALLOWED_ICMPV6 = (*range(133, 137), 143)
"""Neighbour discovery and MLD (RFC 4861, RFC 3810)."""
REQUESTS = {ICMP: 8, ICMPV6: 128}
"""Types of echo requests."""
DHCP = ((68, 67), (546, 547))
ASKED = [question(name)[12:-4] for name in (HUB_NAME, NO_NAME)]
"""Questions of tunnels. Programs ask for another name."""
READ_AT_ONCE = 512
DRAINS_S = 10.0
NAMES = {UDP: "UDP", TCP: "TCP", ICMP: "ICMP", ICMPV6: "ICMPv6", GRE: "GRE"}


@dataclass(frozen=True)
class Packet:
    """What the judgement needs of an IP packet."""

    source: str
    to: str
    protocol: int
    ports: tuple[int, int]
    body: bytes

    def __str__(self) -> str:
        name = NAMES.get(self.protocol, f"protocol {self.protocol}")
        source, to = self.source, self.to
        if self.protocol in (UDP, TCP):
            # Others are random.
            own = f" port {self.ports[0]}" if self.ports[0] < 1024 else ""
            source, to = f"{source}{own}", f"{to} port {self.ports[1]}"
        detail = f" type {self.body[0]}" if self.protocol in (ICMP, ICMPV6) and self.body else ""
        return f"{name}{detail} {source} > {to}"


def parsed(frame: bytes) -> Packet | None:
    """The IP packet in a frame."""
    kind = struct.unpack_from("!H", frame, 12)[0]
    if kind == IPV4 and len(frame) >= 34:
        source, to, protocol, start = frame[26:30], frame[30:34], frame[23], 14 + (frame[14] & 15) * 4
        is_first = struct.unpack_from("!H", frame, 20)[0] & 0x1FFF == 0
    elif kind == IPV6 and len(frame) >= 54:
        source, to, protocol, start, is_first = frame[22:38], frame[38:54], frame[20], 54, True
        if protocol == HOP_BY_HOP and len(frame) > 55:
            protocol, start = frame[54], 54 + 8 + frame[55] * 8
    else:
        return None
    has_ports = protocol in (UDP, TCP) and is_first and len(frame) >= start + 4
    ports = struct.unpack_from("!HH", frame, start) if has_ports else (0, 0)
    address = ipaddress.ip_address
    return Packet(str(address(source)), str(address(to)), protocol, ports, frame[start:])


def letter_of(frame: bytes) -> str:
    """The letter of the program that sent this first. Other packets, and errors about such packets, have none."""
    if MAGIC not in frame:
        return ""
    packet = parsed(frame)
    if packet is None or packet.protocol in REQUESTS and packet.body[0] != REQUESTS[packet.protocol]:
        return ""
    head = {UDP: 8, GRE: 4, ICMP: 8, ICMPV6: 8}.get(packet.protocol, len(packet.body))
    if packet.body[head : head + len(MAGIC)] != MAGIC:
        return ""
    return packet.body[head + len(MAGIC) :][:1].decode("latin-1")


@dataclass
class Periods:
    """Periods in which something was so, by their first and last times."""

    all: list[list[float]] = field(default_factory=list)

    @property
    def now(self) -> bool:
        return bool(self.all) and self.all[-1][1] == float("inf")

    def begin(self, at: float) -> None:
        if not self.now:
            self.all.append([at, float("inf")])

    def end(self, at: float) -> None:
        if self.now:
            self.all[-1][1] = at

    def include(self, at: float, grace: float = 0.0) -> bool:
        return any(begin <= at <= end + grace for begin, end in reversed(self.all))


@dataclass(frozen=True)
class Seen:
    """A frame that came out of a machine."""

    at: float
    where: str
    frame: bytes
    length: int


class Watch:
    """Reads all frames at the far ends of links, on a thread. Times are the kernel's."""

    def __init__(self) -> None:
        self.sockets: dict[int, tuple[str, socket.socket]] = {}
        self.poll = select.epoll()
        self.lock = threading.Lock()
        self.seen: list[Seen] = []
        self.drained = 0.0
        """All frames that arrived until then were read."""
        self.carried = 0.0
        """When a packet of the client last left the hub."""
        self.lost = 0
        threading.Thread(target=self.read, daemon=True).start()

    def add(self, where: str, machine: Machine, device: str) -> None:
        """Watches a device of a machine. What it sends itself does not count."""

        def make() -> socket.socket:
            new = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
            new.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, QUEUE)
            new.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            new.bind((device, ALL_FRAMES))
            new.setblocking(False)
            return new

        new = machine.call(make)
        with self.lock:
            self.sockets[new.fileno()] = (where, new)
            self.poll.register(new, select.EPOLLIN)

    def remove(self, *places: str) -> None:
        with self.lock:
            for file, (where, old) in list(self.sockets.items()):
                if where in places:
                    self.count_lost(old)
                    self.poll.unregister(file)
                    del self.sockets[file]
                    old.close()

    def count_lost(self, one: socket.socket) -> None:
        self.lost += struct.unpack("II", one.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]

    def read(self) -> None:
        while True:
            began = time.time()
            ready = self.poll.poll(0.02)
            with self.lock:
                present = [self.sockets[file] for file, _ in ready if file in self.sockets]
                if all([self.drain(*one) for one in present]):
                    self.drained = began

    def drain(self, where: str, one: socket.socket) -> bool:
        """Reads the frames that wait; returns whether these were all."""
        for _ in range(READ_AT_ONCE):
            try:
                frame, ancillary, _, sender = one.recvmsg(LARGEST, 64)
            except OSError:
                return True  # Or the device is down.
            if sender[2] == PACKET_OUTGOING or len(frame) < 14:
                continue
            at = time.time()
            for _, kind, data in ancillary:
                if kind == SO_TIMESTAMPNS:
                    seconds, nanoseconds = struct.unpack("qq", data[:16])
                    at = seconds + nanoseconds / 1e9
            self.seen.append(Seen(at, where, frame[:KEPT], len(frame)))
            if where == "hub" and MAGIC + b"c" in frame:
                self.carried = at
        return False

    def take(self) -> list[Seen]:
        """The frames since the last call, after all that arrived until now was read."""
        now = time.time()
        while self.drained < now and time.time() < now + DRAINS_S:
            time.sleep(0.005)
        with self.lock:
            for _, one in self.sockets.values():
                self.count_lost(one)
            taken, self.seen = self.seen, []
        return taken


def watch_links(watch: Watch, world: World) -> None:
    """Watches the far ends of the client's links, which are new."""
    watch.remove("l1", "l2", "lan0")
    for link in (L1, L2):
        watch.add(link.device, world.internet, link.far_device)
    watch.add(LAN.device, world.neighbour, LAN.far_device)


def watch_hub(watch: Watch, world: World) -> None:
    """Watches the far ends of the hub's links."""
    watch.add("hub", world.internet, WAN.far_device)
    watch.add("private", world.private, PRIV.far_device)


OUTSIDE = {link.device for link in CLIENT_LINKS}


class Judge:
    """What is permitted, and when."""

    def __init__(self) -> None:
        self.closed, self.looking_up, self.shared = Periods(), Periods(), Periods()
        self.direct: list[str] = []
        self.is_router = False

    def problem(self, seen: Seen) -> tuple[str, str] | None:
        """Whether a frame is `outside` or was `forwarded`, and what it is."""
        if seen.where in OUTSIDE and self.closed.include(seen.at) and (what := self.foreign(seen)):
            return "outside", f"{what}, on {seen.where}"
        letter = letter_of(seen.frame)
        if letter and self.is_forwarded(letter, seen):
            return "forwarded", f"{parsed(seen.frame)}, sent first by {letter}, on {seen.where}"
        return None

    def is_forwarded(self, letter: str, seen: Seen) -> bool:
        if seen.where == "private":
            return letter != "R"
        if seen.where == "hub":
            is_shared = letter == "n" and self.shared.include(seen.at, grace=2.0)
            return letter in "npqi" and not is_shared and not (letter == "i" and self.is_router)
        return letter in "nipq" and not self.is_router

    def foreign(self, seen: Seen) -> str:
        """What a frame is, if it may not leave a closed client; otherwise nothing."""
        kind = struct.unpack_from("!H", seen.frame, 12)[0]
        if kind == ARP:
            return ""
        packet = parsed(seen.frame)
        if packet is None:
            return f"frame of type {kind:#06x}"
        return "" if self.may_leave(packet, seen) else str(packet)

    def may_leave(self, packet: Packet, seen: Seen) -> bool:
        if packet.protocol == IGMP and ":" not in packet.to:
            return True
        if packet.protocol == ICMPV6 and packet.body[:1] and packet.body[0] in ALLOWED_ICMPV6:
            return True
        to = ipaddress.ip_address(packet.to)
        if any(to in ipaddress.ip_network(network) for network in self.direct):
            return True
        if packet.protocol == UDP and (packet.ports in DHCP or packet.to == HUB and packet.ports[1] == HUB_PORT):
            return True
        # The tunnel looks for captive portals while the hub is silent.
        if packet.protocol == TCP and packet.to == HUB and packet.ports[1] == WEB:
            return packet.ports[0] not in OWN_PORTS
        if packet.protocol in (UDP, TCP) and packet.ports[1] == DOMAIN and packet.to in NAME_SERVERS:
            is_asked = packet.protocol == TCP or any(name in packet.body for name in ASKED)
            return is_asked and self.looking_up.include(seen.at)
        # Answers that came through the tunnel for the network behind the client.
        is_answer = packet.to in LAN.far_addresses and packet.source not in LAN.addresses
        return seen.where == LAN.device and is_answer and self.shared.include(seen.at, grace=0.5)


class Findings:
    """Problems, each kind of them once with its count, its bytes, and the time of the first one."""

    def __init__(self) -> None:
        self.all: dict[tuple[str, str], tuple[int, int, float]] = {}

    def add(self, kind: str, what: str, at: float, count: int = 1, length: int = 0) -> None:
        counted, bytes_, first = self.all.get((kind, what), (0, 0, at))
        self.all[kind, what] = counted + count, bytes_ + length, min(at, first)

    def include(self, others: "Findings") -> None:
        for (kind, what), (count, length, first) in others.all.items():
            self.add(kind, what, first, count, length)

    def total(self, kind: str) -> int:
        return sum(count for (one, _), (count, _, _) in self.all.items() if one == kind)

    def lines(self, began: float) -> Iterator[str]:
        """By kind, the most frequent ones first, with the time since `began`."""
        for (kind, what), (count, length, first) in sorted(self.all.items(), key=lambda item: (item[0][0], -item[1][0])):
            size = f"{count} packets, {length} B, first " if length else ""
            yield f"{kind}: {what} ({size}{first - began:+.3f} s)"
