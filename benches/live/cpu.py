"""What sending costs: CPU time per GB over a virtual wire without a rate, both ends together, beside other stacks.

    sudo python3 benches/live/cpu.py --binary target/release/ropewalk [--runs 3] [--seconds 5] [--transport NAME]

Two network namespaces, a pair of virtual devices between them (1500 B), one sender, one receiver. Each transport runs as it comes,
and again with the devices' offloads off, as on a plain network card: then the system cuts what was sent in one call
into packets itself, and nothing puts them together again. A preloaded library is the one beside the command, or
ROPEWALK_LIBRARY. The transports take turns, and the medians are shown.
"""

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import peers
from run import keys

NEAR, FAR = f"rw-cpu-near-{os.getpid()}", f"rw-cpu-far-{os.getpid()}"
FROM, TO, PORT = "10.79.0.1", "10.79.0.2", 4433
OFFLOADS = ("tso", "gso", "gro", "tx-udp-segmentation")


@dataclass
class Transport:
    """Lines for a shell, and how many bytes the user was given by what the two ends printed."""

    name: str
    receive: str
    send: str
    delivered: Callable[[str, str], int]
    found: dict[bool, list[tuple[float, float]]] = field(default_factory=lambda: {True: [], False: []})
    """Goodput in bit/s and CPU seconds per GB of each run, by whether the offloads are on."""


def told(text: str) -> dict:
    return json.loads(text[text.index("{") : text.rindex("}") + 1])


def ropewalk(binary: Path, room: str, seconds: float, sealed: bool, authenticated: str = "") -> Transport:
    far, near = "--plain", "--plain"
    if authenticated:
        far += f" --extension authentication --authenticate {authenticated}"
        near = far
    if sealed:
        public_near, public_far = keys(binary, Path(room))
        far, near = f"--key {room}/far.key --allow {public_near}", f"--key {room}/near.key --peer {public_far}"
    return Transport(
        "Ropewalk, " + ("sealed" if sealed else f"plain, {authenticated} authenticated" if authenticated else "plain"),
        f"{binary} bench serve --once {far} --listen {TO}",
        f"{binary} bench run {near} --to {TO} --from {FROM} --time '{seconds} s' --warmup '0 s' --json",
        lambda _, said: sum(path["delivered_bytes"] for path in told(said)["paths"]),
    )


def quinn(room: str, seconds: float) -> Transport | None:
    if not (built := peers.quinn()):
        return None
    (peer, version), certificate = built, f"{room}/certificate"
    return Transport(
        f"quinn {version}",
        f"{peer} recv {TO}:{PORT} {certificate}",
        f"{peer} send {TO}:{PORT} {certificate} {seconds}",
        lambda said, _: told(said)["bytes"],
    )


def preloaded(binary: Path, seconds: float) -> Transport | None:
    if not shutil.which("iperf3"):
        return None
    return Transport(
        "iperf3 over preloaded sockets, 64 kB messages",
        f"{binary} preload -- iperf3 -s -1 --json",
        f"{binary} preload -- iperf3 --sctp -c {TO} -t {seconds:.0f} -l 65536 --json",
        lambda _, said: told(said)["end"]["sum_received"]["bytes"],
    )


def usrsctp(seconds: float, message: int) -> Transport | None:
    if not peers.usrsctp():
        return None
    common = f"--message {message} --receive-buffer 1000000"
    return Transport(
        f"usrsctp, plain, messages of {message} B",
        f"{peers.USRSCTP} --bind {TO} {common} --server --warmup 0",
        f"{peers.USRSCTP} --bind {FROM} {common} --connect {TO} --seconds {seconds} --finish shutdown",
        lambda said, _: told(said)["received"]["measured_bytes"],
    )


def devices(line: str) -> None:
    subprocess.run(line, shell=True, check=True, stdout=subprocess.DEVNULL)


def set_up() -> None:
    devices(f"ip netns add {NEAR} && ip netns add {FAR}")
    devices(f"ip link add va netns {NEAR} type veth peer name vb netns {FAR}")
    for space, device, address in ((NEAR, "va", FROM), (FAR, "vb", TO)):
        devices(f"ip -n {space} addr add {address}/24 dev {device}")
        devices(f"ip -n {space} link set {device} up && ip -n {space} link set lo up")


def tear_down() -> None:
    for space in (NEAR, FAR):
        subprocess.run(["ip", "netns", "del", space], check=False, stderr=subprocess.DEVNULL)


def offloads(on: bool) -> None:
    switches = " ".join(f"{name} {'on' if on else 'off'}" for name in OFFLOADS)
    for space, device in ((NEAR, "va"), (FAR, "vb")):
        devices(f"ip netns exec {space} ethtool -K {device} {switches}")


def cpu() -> float:
    """CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(transport: Transport, seconds: float) -> tuple[float, float]:
    before = cpu()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    far = subprocess.Popen(["ip", "netns", "exec", FAR, "sh", "-c", "exec " + transport.receive], **pipes)
    time.sleep(0.5)
    near = subprocess.Popen(["ip", "netns", "exec", NEAR, "sh", "-c", "exec " + transport.send], **pipes)
    try:
        said = near.communicate(timeout=seconds + 30)
        heard = far.communicate(timeout=30)
    except subprocess.TimeoutExpired as slow:
        near.kill()
        far.kill()
        raise SystemExit(f"{transport.name} does not end: {slow}") from None
    if near.returncode or far.returncode:
        raise SystemExit(f"{transport.name}: {said[1]}{heard[1]}")
    delivered = transport.delivered(heard[0], said[0])
    return delivered * 8 / seconds, (cpu() - before) / (delivered / 1e9)


def shown(found: list[tuple[float, float]]) -> str:
    rate, cost = (statistics.median(column) for column in zip(*found, strict=True))
    return f"{cost:.2f} | {rate / 1e9:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--transport", action="append", help="part of a name; all, if none is given")
    arguments = parser.parse_args()
    binary, seconds = arguments.binary.resolve(), arguments.seconds
    if missing := [tool for tool in ("ip", "ethtool") if not shutil.which(tool)]:
        parser.error(f"{' and '.join(missing)} not found: install Debian's iproute2 and ethtool")
    if os.geteuid() != 0:
        parser.error("network namespaces need root: run it with sudo")
    with tempfile.TemporaryDirectory() as room:
        makers: dict[str, Callable[[], Transport | None]] = {
            "Ropewalk, sealed": lambda: ropewalk(binary, room, seconds, True),
            "Ropewalk, plain": lambda: ropewalk(binary, room, seconds, False),
            "Ropewalk, plain, data authenticated": lambda: ropewalk(binary, room, seconds, False, "data"),
            "Ropewalk, plain, data,sack authenticated": lambda: ropewalk(binary, room, seconds, False, "data,sack"),
            "quinn": lambda: quinn(room, seconds),
            "preloaded": lambda: preloaded(binary, seconds),
            "usrsctp": lambda: usrsctp(seconds, 1400),
            "usrsctp, 64 kB": lambda: usrsctp(seconds, 65536),
        }
        wanted = arguments.transport or [""]
        made = [make() for name, make in makers.items() if any(part in name for part in wanted)]
        transports = [transport for transport in made if transport]
        tear_down()
        set_up()
        try:
            for number in range(arguments.runs):
                for on in (True, False):
                    offloads(on)
                    for transport in transports:
                        print(f"run {number + 1}, offloads {'on' if on else 'off'}: {transport.name}", file=sys.stderr)
                        transport.found[on].append(run(transport, seconds))
        finally:
            tear_down()
    print(f"One wire of 1500 B, {seconds:g} s, medians of {arguments.runs}; CPU seconds per GB of both ends together.\n")
    print("| transport | CPU s/GB | Gbit/s | CPU s/GB, offloads off | Gbit/s, offloads off |")
    print("| --- | --- | --- | --- | --- |")
    for transport in transports:
        print(f"| {transport.name} | {shown(transport.found[True])} | {shown(transport.found[False])} |")


if __name__ == "__main__":
    main()
