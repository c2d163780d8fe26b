"""UDP at 80 % of the links' rates through a tunnel over emulated links, beside the same simulated.

    sudo python3 benches/live/tunnel_udp.py --binary target/release/ropewalk [--runs 3] [--case NAME]

A case is a scenario in tunnel/ whose links lose nothing. One flow of UDP packets of 1200 B at a constant rate for `--seconds`;
what is sent in the first `--warmup` seconds does not count. Figures: the share that was delivered, the share that arrived after a later
one, and the delay from the sender's call to the receiver's, both of which read one clock. A run in which the emulator was late by more
than 20 ms does not count and is tried again.
"""

import argparse
import json
import socket
import statistics
import struct
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from run import emulate, keys, wanted
from tunnel import CASES, INNER_HUB, options, punctual, simulated_flows, tunnel_far, tunnel_near, until_answered, with_binary

PORT = 5202
PACKET = 1200
"""Bytes of an IP packet."""
HEADERS = 28
"""Bytes of IPv4 and UDP in it."""
SHARE = 0.8
STAMP = struct.Struct("!Qd")
"""Number of a packet, and when it was sent, seconds of the monotonic clock."""
SILENCE_S = 2.0
"""The receiver ends so long after the last packet."""
LOSSLESS = [case for case in CASES if case.stem.startswith(("1", "2", "3"))]


def send(to: str, rate_bps: float, seconds: float) -> None:
    """Sends packets at a constant interval."""
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.connect((to, PORT))
    interval = PACKET * 8 / rate_bps
    begin = time.monotonic()
    for number in range(int(seconds / interval)):
        due = begin + number * interval
        if (wait := due - time.monotonic()) > 0:
            time.sleep(wait)
        link.send(STAMP.pack(number, time.monotonic()).ljust(PACKET - HEADERS))


def receive(out: Path, first: int, count: int) -> None:
    """Writes the figures of the packets from number `first` on, of `count` in all."""
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_000_000)
    link.bind(("0.0.0.0", PORT))
    delays, late, highest = [], 0, -1
    while True:
        try:
            packet = link.recv(PACKET)
        except TimeoutError:
            break
        link.settimeout(SILENCE_S)
        number, sent = STAMP.unpack_from(packet)
        if number >= first:
            delays.append(time.monotonic() - sent)
            late += number < highest
        highest = max(highest, number)
    delays.sort()
    known = len(delays)
    p50, p99 = (1e3 * delays[int(known * share)] for share in (0.5, 0.99))
    figures = {"delivered": known / (count - first), "late": late / known, "p50_ms": p50, "p99_ms": p99, "max_ms": 1e3 * delays[-1]}
    out.write_text(json.dumps(figures), encoding="utf-8")


def rate_of(case: Path) -> float:
    """80 % of the sum of the rates, bit/s."""
    paths = tomllib.loads(case.read_text(encoding="utf-8"))["path"]
    rates = [path["rate"].split() for path in paths]
    assert all(unit == "Mbit/s" for _, unit in rates), rates
    return SHARE * 1e6 * sum(float(number) for number, _ in rates)


def run(arguments: argparse.Namespace, case: Path, seed: int) -> tuple[dict, float]:
    """Figures of one run, and how late the emulator was, in seconds."""
    own = f"{sys.executable} {Path(__file__).resolve()}"
    rate = rate_of(case)
    per_second = rate / 8 / PACKET
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        out = room / "figures.json"
        keys(arguments.binary, room)
        counts = f"{int(arguments.warmup * per_second)} {int(arguments.seconds * per_second)}"
        far = f"{tunnel_far(room)} exec {own} receive {out} {counts}"
        near = f"{tunnel_near(room)} {until_answered(INNER_HUB)} {own} send {INNER_HUB} {rate} {arguments.seconds}; sleep {SILENCE_S + 2}"
        lines = with_binary(arguments.binary, far, near)
        text, late = emulate(arguments.binary, case, seed, lines, out, arguments.seconds + 60)
        return json.loads(text), late


def simulated(arguments: argparse.Namespace, case: Path, seed: int) -> dict:
    """The same figures, simulated."""
    flow = f'\n[[flow]]\nname = "udp"\nkind = "udp"\nrate = "{rate_of(case) / 1e6} Mbit/s"\npacket = "{PACKET} B"\n'
    (udp,) = simulated_flows(arguments, case, flow, seed, arguments.warmup)
    delays = {f"{share}_ms": 1e3 * udp[f"delay_{share}_s"] for share in ("p50", "p99", "max")}
    return {"delivered": 1 - udp["lost"], "late": udp["out_of_order"], **delays}


def shown(runs: list[dict]) -> str:
    """The medians of several runs; the least share that was delivered and the longest delay."""
    if not runs:
        return "always late"
    middle = {name: statistics.median(figures[name] for figures in runs) for name in runs[0]}
    least, most = min(figures["delivered"] for figures in runs), max(figures["max_ms"] for figures in runs)
    return f"{100 * least:.2f} %, {100 * middle['late']:.1f} % late; {middle['p50_ms']:.0f}, {middle['p99_ms']:.0f}, {most:.0f} ms"


def cells(arguments: argparse.Namespace, case: Path) -> tuple[str, str]:
    """Measured and simulated."""
    found = punctual(arguments.runs, lambda seed: run(arguments, case, seed))
    return shown(found), shown([simulated(arguments, case, seed) for seed in range(1, arguments.runs + 1)])


def main() -> None:
    if sys.argv[1:2] == ["send"]:
        return send(sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
    if sys.argv[1:2] == ["receive"]:
        return receive(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    arguments = options(__doc__, warmup=10.0).parse_args()
    print("UDP packets of 1200 B at 80 % of the rates: delivered, late; delay p50, p99, longest.\n")
    print("| case | tunnel | simulated |\n| --- | --- | --- |")
    for case in LOSSLESS:
        if wanted(case.stem, arguments.case):
            print(f"| {case.stem}", *cells(arguments, case), sep=" | ", end=" |\n", flush=True)
    return None


if __name__ == "__main__":
    main()
