"""The machines and their links, all of them in network namespaces without a name, and what a tunnel may change on the client.

    neighbour -- lan0  client  l1, l2 -- internet -- wan0  hub  priv0 -- private

`internet` is the router of both links and of the hub, and it has the addresses of the servers.
"""

import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

sys.path.append(str(Path(__file__).resolve().parents[1] / "chaos"))
from hosts import CLONE_NEWNET, LIBC, Host, aside, check  # noqa: E402

T = TypeVar("T")

HUB, HUB_PORT = "203.0.113.9", 9899
HUB_NAME, NO_NAME = "hub.example.org", "nosuch.example.org"
SERVERS = ("192.0.2.80", "192.0.2.81", "2001:db8:80::80")
"""Echo servers."""
NAME_SERVERS = ("192.0.2.53", "2001:db8:80::53")
PRIVATE = ("172.16.5.2", "fd05::2")
INNER = ("10.99.0.2", "fd99::2")
"""Addresses of the first client in the tunnel."""
TUNNEL_NETWORKS = "10.99.0.0/24,fd99::/64"
RESOLV_CONF = Path("/etc/resolv.conf")
LINK_LOCAL = "fe80::2"


@dataclass(frozen=True)
class Link:
    """An interface of one machine, whose other end is the interface `far_device` of another one."""

    device: str
    addresses: tuple[str, str]
    far_device: str
    far_addresses: tuple[str, str]
    networks: tuple[str, str]
    metric: int = 0
    """Metric of the default routes by this link; 0: there are none."""

    @property
    def mac(self) -> str:
        return "02:00:00:00:01:" + f"{sum(self.device.encode()) % 256:02x}"

    @property
    def far_mac(self) -> str:
        return self.mac.replace(":01:", ":02:", 1)


L1 = Link("l1", ("198.51.100.2", "2001:db8:1::2"), "l1", ("198.51.100.1", "2001:db8:1::1"), ("198.51.100.0/24", "2001:db8:1::/64"), 100)
L2 = Link("l2", ("100.64.2.2", "2001:db8:2::2"), "l2", ("100.64.2.1", "2001:db8:2::1"), ("100.64.2.0/24", "2001:db8:2::/64"), 200)
LAN = Link("lan0", ("192.168.77.1", "fd77::1"), "e0", ("192.168.77.2", "fd77::2"), ("192.168.77.0/24", "fd77::/64"))
WAN = Link("wan0", (HUB, "2001:db8:9::9"), "hub", ("203.0.113.1", "2001:db8:9::1"), ("203.0.113.0/24", "2001:db8:9::/64"), 100)
PRIV = Link("priv0", ("172.16.5.1", "fd05::1"), "e0", PRIVATE, ("172.16.5.0/24", "fd05::/64"))
OUTER = (L1, L2)
CLIENT_LINKS = (L1, L2, LAN)


class Machine(Host):
    """A network namespace, and programs that run in it."""

    def __init__(self, name: str, **settings: str) -> None:
        super().__init__(name)
        common = {"ipv6/conf/all/accept_dad": "0", "ipv6/conf/default/accept_dad": "0"}
        # Link-local addresses are set by hand, so that they come back when an address is flushed.
        common |= {"ipv6/conf/default/addr_gen_mode": "1", "ipv6/conf/default/router_solicitations": "0"}
        for place in ("all", "default"):
            common |= {f"ipv4/conf/{place}/rp_filter": "0", f"ipv4/conf/{place}/forwarding": "0"}
        self.set(**(common | settings))

    def close(self) -> None:
        """Gives the namespace up. It ends with its last process."""
        os.close(self.handle)

    def call(self, work: Callable[[], T]) -> T:
        """Calls `work` on a thread in this namespace."""

        def enter() -> T:
            check(LIBC.setns(self.handle, CLONE_NEWNET), "cannot enter a network namespace")
            return work()

        return aside(enter)

    def set(self, **settings: str) -> None:
        """Writes settings below /proc/sys/net."""

        def write() -> None:
            for name, value in settings.items():
                Path("/proc/sys/net", name).write_text(value)

        self.call(write)

    def run(self, *words: str, text: str = "", also: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Runs a program here, with `text` as its input and these further files open, and waits for it."""
        return subprocess.run(
            self.inside(list(words)), pass_fds=[self.handle, *also], input=text, capture_output=True, text=True, check=False
        )

    def batch(self, lines: list[str]) -> None:
        """Runs `ip` with each of these lines. What is as it should be is an error that does not matter."""
        self.run("ip", "-force", "-batch", "-", text="\n".join(lines) + "\n")

    def join(self, link: Link, other: "Machine") -> None:
        """Makes a link to another machine. Its interfaces have no addresses yet."""
        far = f"peer name {link.far_device} address {link.far_mac} netns /proc/self/fd/{other.handle}"
        words = f"ip link add {link.device} address {link.mac} type veth {far}".split()
        done = self.run(*words, also=(other.handle,))
        if done.returncode != 0:
            raise OSError(f"`{' '.join(words)}`: {done.stderr.strip()}")
        far_end = [f"link set {link.far_device} up", f"address add fe80::1/64 dev {link.far_device} nodad"]
        for address, network in zip(link.far_addresses, link.networks, strict=True):
            far_end.append(f"address add {address}/{length(network)} dev {link.far_device}{nodad(address)}")
        other.batch(far_end)

    def configure(self, links: tuple[Link, ...]) -> None:
        """Gives these interfaces their addresses and routes, whatever they have."""
        self.batch([line for link in links for line in configuration(link)])


def packet_socket(machine: Machine, device: str) -> socket.socket:
    """A socket that sends frames by a device of a machine, and receives nothing."""

    def make() -> socket.socket:
        new = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        new.bind((device, 0))
        new.setblocking(False)
        return new

    return machine.call(make)


def length(network: str) -> str:
    return network.split("/")[1]


def nodad(address: str) -> str:
    return " nodad" if ":" in address else ""


def configuration(link: Link) -> list[str]:
    device = link.device
    lines = [f"link set {device} up", f"address replace {LINK_LOCAL}/64 dev {device} nodad"]
    for address, network in zip(link.addresses, link.networks, strict=True):
        lines.append(f"address replace {address}/{length(network)} dev {device}{nodad(address)}")
    ipv4, ipv6 = link.networks
    lines.append(f"route replace {ipv4} dev {device} proto kernel scope link src {link.addresses[0]}")
    lines.append(f"route replace {ipv6} dev {device} proto kernel metric 256")
    # `replace` would replace the same route of another interface.
    lines.append(f"route append fe80::/64 dev {device} proto kernel metric 256")
    if link.metric:
        lines += [f"route replace default via {far} dev {device} metric {link.metric}" for far in link.far_addresses]
    return lines


FORWARDING = {f"{family}/conf/{place}/forwarding": "1" for family in ("ipv4", "ipv6") for place in ("all", "default")}


class World:
    """All machines. The client is replaced when it reboots."""

    def __init__(self) -> None:
        self.internet = Machine("internet", **FORWARDING)
        self.hub, self.private, self.neighbour = (Machine(name) for name in ("hub", "private", "neighbour"))
        self.hub.join(WAN, self.internet)
        self.hub.join(PRIV, self.private)
        self.hub.configure((WAN, PRIV))
        self.private.batch([f"route replace default via {address}" for address in PRIV.addresses])
        self.internet.batch([f"address add {address} dev lo{nodad(address)}" for address in (*SERVERS, *NAME_SERVERS)])
        self.client: Machine | None = None

    def new_client(self, is_router: bool, rp_filter: int, proxy_arp: bool) -> Machine:
        """A client that has just booted: it has no links. `proxy_arp`: the routers of the links answer for all addresses."""
        if self.client:
            self.unplug()
            self.client.close()
        filters = {f"ipv4/conf/{place}/rp_filter": str(rp_filter) for place in ("all", "default")}
        self.client = Machine("client", **filters, **(FORWARDING if is_router else {}))
        self.proxy_arp = proxy_arp
        return self.client

    def plug(self) -> None:
        """Makes the client's links and gives them addresses."""
        assert self.client
        for link in OUTER:
            self.client.join(link, self.internet)
            self.internet.set(**{f"ipv4/conf/{link.far_device}/proxy_arp": str(int(self.proxy_arp))})
        self.client.join(LAN, self.neighbour)
        self.neighbour.batch([f"route replace default via {address}" for address in LAN.addresses])
        self.client.configure(CLIENT_LINKS)

    def unplug(self) -> None:
        assert self.client
        self.client.batch([f"link delete {link.device}" for link in CLIENT_LINKS])


# What a tunnel may change.

ROUTE_KEYS = ("type", "dst", "gateway", "via", "dev", "protocol", "scope", "prefsrc", "metric", "table", "nexthops")
OWN_ROUTES = ("local", "broadcast", "multicast", "anycast")
SETTINGS = ("ipv4/conf/*/forwarding", "ipv4/conf/*/accept_local", "ipv4/conf/*/rp_filter", "ipv4/ip_forward")
SETTINGS += ("ipv6/conf/*/forwarding", "ipv6/conf/*/accept_ra", "ipv6/conf/*/force_forwarding")

State = dict[str, list[str]]


def shown(item: dict, keys: tuple[str, ...]) -> str:
    return " ".join(f"{key}={item[key]}" for key in keys if key in item)


def addresses_of(item: dict) -> str:
    found = sorted(shown(one, ("local", "prefixlen", "scope")) for one in item["addr_info"])
    return f"{item['ifname']} {item.get('address')} mtu {item['mtu']} {'UP' in item['flags']} {'; '.join(found)}"


def state_of(machine: Machine) -> State:
    """What a tunnel may change on a machine."""

    def listed(*words: str) -> list[dict]:
        return json.loads(machine.run("ip", "-j", *words).stdout or "[]")

    found: State = {"nft": machine.run("nft", "list", "ruleset").stdout.splitlines()}
    for family in ("-4", "-6"):
        keys = ("priority", "not", "src", "dst", "iif", "oif", "fwmark", "ipproto", "sport", "dport", "table", "action")
        found[f"ip {family} rule"] = [shown(item, keys) for item in listed(family, "rule")]
        routes = listed(family, "route", "show", "table", "all")
        found[f"ip {family} route"] = sorted(shown(item, ROUTE_KEYS) for item in routes if item.get("type") not in OWN_ROUTES)
    found["ip addr"] = sorted(addresses_of(item) for item in listed("addr"))

    def settings() -> list[str]:
        files = (file for pattern in SETTINGS for file in Path("/proc/sys/net").glob(pattern))
        return sorted(f"{file}: {file.read_text().strip()}" for file in files)

    found["settings"] = machine.call(settings)
    return found


def names_file() -> list[str]:
    """The kind, the mode and the bytes of /etc/resolv.conf."""
    if RESOLV_CONF.is_symlink():
        kind = f"link to {os.readlink(RESOLV_CONF)}"
    else:
        kind = f"file of mode {stat.S_IMODE(RESOLV_CONF.stat().st_mode):o}"
    return [kind, repr(RESOLV_CONF.read_bytes())]


def differences(before: State, after: State) -> list[str]:
    """What is missing from `before`, and what is there besides, line by line."""
    found = []
    for part, lines in before.items():
        found += [f"{part}: missing: {line}" for line in lines if line not in after[part]]
        found += [f"{part}: left: {line}" for line in after[part] if line not in lines]
    return found
