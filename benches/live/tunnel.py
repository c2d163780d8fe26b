"""One TCP connection and a ping through a tunnel over emulated links, beside what the kernel and WireGuard do.

    sudo python3 benches/live/tunnel.py --binary target/release/ropewalk [--runs 3] [--case NAME] [--contender NAME]

A case is a scenario in tunnel/, or one of the ordinary access links. Contenders: the tunnel over both links; the same, simulated; Linux TCP on each link alone; Linux
Multipath TCP; and TCP through wireguard-go on the first link, if that is installed. Figures: goodput after the warm-up, the longest pause of the
receiver, the ping beside it in milliseconds, 50th and 99th percentile, and for tunnels the CPU seconds per GB of their
processes at both ends. A run in which the emulator was late by more
than 20 ms does not count and is tried again.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from process_times import ProcessTimes, is_tunnel, is_wireguard
from run import HERE, LATEST_S, STREAM, TRIES, emulate, keys, wanted

ROOT = HERE.parents[1]
CASES = [*sorted((HERE / "tunnel").glob("*.toml")), ROOT / "scenarios/access/dsl-lte.toml", ROOT / "scenarios/access/dsl-cable.toml"]
PORT = 5201
BUFFER = 4_000_000
INNER_HUB = "10.88.0.1"
PING_S = 0.1
"""Interval of the pings, seconds."""


@dataclass(frozen=True)
class Contender:
    """What runs at the hub before the receiver, what runs at the client before the sender, and where the sender connects to."""

    name: str
    far: Callable[[Path], str]
    near: Callable[[Path], str]
    to: str
    options: str = ""
    process: Callable[[list[str]], bool] | None = None
    """Whether the words of a command line are those of its processes; none for the kernel's transports."""
    is_simulated: bool = False
    """Whether it is simulated: no program runs at either end."""


def tunnel_far(room: Path) -> str:
    state = f"--run-directory {room}/far --state-directory {room}/far"
    return f"{{binary}} tunnel serve --key {room}/far.key --allow $(cat {room}/near.pub) {state} 2>{room}/far.log & "


BOTH_LINKS = "--to {remote1},{remote2} --from {local1},{local2}"


def tunnel_near(room: Path, links: str = BOTH_LINKS) -> str:
    keep = f"--no-dns --route 10.99.0.0/16 --run-directory {room}/near"
    line = f"{{binary}} tunnel up --key {room}/near.key --peer $(cat {room}/far.pub) {links} {keep} 2>{room}/near.log & "
    return line + "up=$!; trap 'kill $up' EXIT; "


def wireguard(room: Path, side: str) -> str:
    own, far = (1, "far") if side == "near" else (2, "near")
    endpoint = "endpoint {remote1}:51820" if side == "near" else ""
    # Both namespaces have one /var/run, where wireguard-go puts a socket with the name of the device.
    device = f"wg-{side}"
    return (
        f"wireguard-go {device} && wg set {device} listen-port 51820 private-key {room}/{side}.wg peer $(cat {room}/{far}.wgpub) "
        f"{endpoint} allowed-ips 10.66.0.0/24 && ip address add 10.66.0.{own}/24 dev {device} && ip link set {device} mtu 1420 up; "
    )


MPTCP_LIMITS = "ip mptcp limits set subflow 8 add_addr_accepted 8; "
MPTCP_ENDPOINT = "ip mptcp endpoint add {local2} dev {device2} subflow; "
CONTENDERS = [
    Contender("tunnel", tunnel_far, tunnel_near, INNER_HUB, process=is_tunnel),
    Contender("simulated", lambda _: "", lambda _: "", "", is_simulated=True),
    Contender("TCP on link 1", lambda _: "", lambda _: "", "{remote1}"),
    Contender("TCP on link 2", lambda _: "", lambda _: "", "{remote2}"),
    Contender("Linux MPTCP", lambda _: MPTCP_LIMITS, lambda _: MPTCP_LIMITS + MPTCP_ENDPOINT, "{remote1}", "--mptcp"),
    Contender(
        "wireguard-go on link 1",
        lambda room: wireguard(room, "far"),
        lambda room: wireguard(room, "near"),
        "10.66.0.2",
        process=is_wireguard,
    ),
]


def wireguard_keys(room: Path) -> str:
    """Commands that make the keys of both ends."""
    return "; ".join(f"wg genkey > {room}/{side}.wg; wg pubkey < {room}/{side}.wg > {room}/{side}.wgpub" for side in ("near", "far"))


def until_answered(to: str) -> str:
    """A command that waits until this address answers."""
    return f"for i in $(seq 100); do ping -c 1 -W 1 {to} > /dev/null && break; sleep 0.1; done; "


def with_binary(binary: Path, far: str, near: str) -> tuple[str, str]:
    """The commands of both ends with the name of the binary in them."""
    name = str(binary.resolve())
    return far.replace("{binary}", name), near.replace("{binary}", name)


def pings(text: str) -> list[float]:
    """Round trips in milliseconds; those of lost pings are infinite."""
    sent = int(text.split(" packets transmitted")[0].split()[-1])
    found = [float(line.split("time=")[1].split()[0]) for line in text.splitlines() if "time=" in line]
    return sorted(found + [float("inf")] * (sent - len(found)))


def run(arguments: argparse.Namespace, case: Path, contender: Contender, seed: int) -> tuple[dict, float]:
    """Goodput, longest pause and pings of one run, and how late the emulator was, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        out = room / "goodput.json"
        keys(arguments.binary, room)
        if contender.name.startswith("wireguard"):
            subprocess.run(["sh", "-c", wireguard_keys(room)], check=True)
        times = f"--seconds {arguments.seconds} --warmup {arguments.warmup}"
        far = f"{contender.far(room)} exec {STREAM} recv --port {PORT} --buffer {BUFFER} {times} --out {out} {contender.options}"
        count = round(arguments.seconds / PING_S)
        send = f"{STREAM} send --port {PORT} --to {contender.to} --seconds {arguments.seconds} --congestion {arguments.congestion} {contender.options}"
        ping = f"ping -i {PING_S} -c {count} {contender.to} > {room}/ping & ping=$!; "
        near = f"{contender.near(room)} {until_answered(contender.to)} {ping} {send}; wait $ping; true"
        lines = with_binary(arguments.binary, far, near)
        with ProcessTimes(contender.process or (lambda _: False)) as used:
            text, late = emulate(arguments.binary, case, seed, lines, out, arguments.seconds + 60)
        figures = json.loads(text)
        # The CPU time is that of the whole run; the goodput, that of the part that counts.
        carried = figures["goodput_bps"] / 8 * arguments.seconds
        figures["cpu_s_per_gb"] = used.seconds / (carried / 1e9) if contender.process else None
        figures["ping_ms"] = pings((room / "ping").read_text(encoding="utf-8"))
        return figures, late


FLOWS = """
[[flow]]
name = "download"
kind = "tcp"
congestion = "{congestion}"
[[flow]]
name = "ping"
kind = "ping"
every = "{every} s"
"""


def simulated_flows(arguments: argparse.Namespace, case: Path, flows: str, seed: int, warmup: float) -> list[dict]:
    """Figures of simulated flows over the links of a case, through a tunnel whose ends pause as those of the command do."""
    settings = [f"transfer.seed={seed}", f"transfer.duration={arguments.seconds} s", f"transfer.warmup={warmup} s"]
    settings.append("tunnel.longest_pause=2 ms")
    command = [arguments.binary, "run", "-", "--json", *(word for one in settings for word in ("--set", one))]
    text = case.read_text(encoding="utf-8") + flows
    result = subprocess.run(command, input=text, check=True, capture_output=True, text=True)
    return json.loads(result.stdout)["flows"]


def simulate(arguments: argparse.Namespace, case: Path, contender: Contender, seed: int) -> tuple[dict, float]:
    """As `run`: the same links and flows, simulated."""
    assert contender.is_simulated
    flows = FLOWS.format(congestion=arguments.congestion, every=PING_S)
    # As in a real run, the goodput is that after the warm-up, and all pings count.
    download, _ = simulated_flows(arguments, case, flows, seed, arguments.warmup)
    _, ping = simulated_flows(arguments, case, flows, seed, 0.0)
    quantiles = [1e3 * ping[f"delay_{share}_s"] for share in ("p50", "p99")]
    figures = {"goodput_bps": download["goodput_bps"], "longest_pause_s": download["longest_gap_s"]}
    return figures | {"ping_quantiles_ms": quantiles, "cpu_s_per_gb": None}, 0.0


def punctual(runs: int, measure: Callable[[int], tuple[dict, float]]) -> list[dict]:
    """Figures of the runs in which the emulator was not late; `measure` has them and its lateness in seconds, by the seed."""
    found = []
    for seed in range(1, runs + 1):
        for _ in range(TRIES):
            figures, late = measure(seed)
            if late <= LATEST_S:
                found.append(figures)
                break
    return found


def ping_quantiles(found: list[dict]) -> tuple[float, float]:
    """50th and 99th percentile of the pings of all runs, ms; of simulated runs, the medians of those of each run."""
    if "ping_quantiles_ms" in found[0]:
        p50, p99 = (statistics.median(share) for share in zip(*(figures["ping_quantiles_ms"] for figures in found), strict=True))
        return p50, p99
    pings_ms = sorted(ping for figures in found for ping in figures["ping_ms"])
    p50, p99 = (pings_ms[min(int(len(pings_ms) * share), len(pings_ms) - 1)] for share in (0.5, 0.99))
    return p50, p99


def cell(arguments: argparse.Namespace, case: Path, contender: Contender) -> str:
    measure = simulate if contender.is_simulated else run
    found = punctual(arguments.runs, lambda seed: measure(arguments, case, contender, seed))
    if not found:
        return "always late"
    goodput = statistics.median(figures["goodput_bps"] for figures in found) / 1e6
    pause = max(figures["longest_pause_s"] for figures in found)
    p50, p99 = ping_quantiles(found)
    costs = [figures["cpu_s_per_gb"] for figures in found if figures["cpu_s_per_gb"] is not None]
    cost = f"; {statistics.median(costs):.0f} s/GB" if costs else ""
    return f"{goodput:.2f} ({pause:.2f} s; {p50:.0f}, {p99:.0f}{cost})"


def options(description: str, warmup: float) -> argparse.ArgumentParser:
    """Options of benchmarks of a tunnel over emulated links. `warmup`: the default, seconds."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--warmup", type=float, default=warmup)
    parser.add_argument("--case", action="append", help="part of a file's name; all, if none is given")
    return parser


def main() -> None:
    parser = options(__doc__, warmup=5.0)
    parser.add_argument("--congestion", default="cubic", help="congestion control of the inner connection")
    parser.add_argument("--contender", action="append", help="part of a name; all, if none is given")
    arguments = parser.parse_args()
    contenders = [one for one in CONTENDERS if wanted(one.name, arguments.contender)]
    if not (shutil.which("wireguard-go") and shutil.which("wg")):
        print("wireguard-go is not installed; left out\n")
        contenders = [one for one in contenders if not one.name.startswith("wireguard")]
    print("Goodput in Mbit/s (longest pause; ping p50, p99 in ms; CPU seconds per GB).\n")
    print("| case |", " | ".join(one.name for one in contenders), "|")
    print("| --- |", " | ".join("---" for _ in contenders), "|")
    for case in CASES:
        if not wanted(case.stem, arguments.case):
            continue
        print(f"| {case.stem} |", end="", flush=True)
        for contender in contenders:
            print(f" {cell(arguments, case, contender)} |", end="", flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
