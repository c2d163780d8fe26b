"""Real transports over emulated links: a table of goodputs, the median of several runs.

    sudo python3 benches/live/run.py --binary target/release/ropewalk [--runs 3] [--case NAME] [--transport NAME]

A case is a scenario file beside this one. A transport is a row of TRANSPORTS: how it receives, how it sends. A
run in which the emulator was late by more than 20 ms does not count and is tried again.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import peers

HERE = Path(__file__).resolve().parent
STREAM = f"{sys.executable} {HERE / 'stream.py'}"
LATEST_S = 0.020
"""A run counts if no packet was handed out, and no waking up was, later than this."""
PAYLOAD = 1404
"""User data of a full packet of 1500 B: without IPv4 (20), UDP (8), seal (26), SCTP (12), timestamp (12), DATA (16) and
what is left over of four."""
TRIES = 3
"""How often a run that was late is tried again."""
UNITS = {"B": 1, "kB": 1000, "MB": 1000_000, "KiB": 1024, "MiB": 1024**2}


@dataclass(frozen=True)
class Case:
    """A scenario, and what is measured of it."""

    file: Path
    buffer: int
    seconds: float
    warmup: float
    congestion: str

    @property
    def name(self) -> str:
        return self.file.stem


@dataclass(frozen=True)
class Transport:
    """How to receive and how to send. Lines are for a shell; {remote1} and the like are filled in by `emulate`.

    One of them writes {"goodput_bps": ...} of what was read after the warm-up to the file that both are given.
    Beside that file is the receiver's key, `far.key`, and the sender's, `near.key`.
    """

    name: str
    receive: Callable[[Case, Path], str]
    send: Callable[[Case, Path], str]


def tcp_send(case: Case, path: int, options: str = "") -> str:
    options += f" --congestion {case.congestion} --seconds {case.seconds}"
    return f"exec {STREAM} send --to {{remote{path}}} {options}"


def tcp_receive(case: Case, out: Path, options: str = "") -> str:
    times = f"--seconds {case.seconds} --warmup {case.warmup}"
    return f"exec {STREAM} recv --buffer {case.buffer} {times} --out {out} {options}"


def tcp_on(path: int) -> Transport:
    return Transport(f"TCP on path {path}", tcp_receive, lambda case, _: tcp_send(case, path))


def mptcp_receive(case: Case, out: Path) -> str:
    return "ip mptcp limits set subflow 8 add_addr_accepted 8 && " + tcp_receive(case, out, "--mptcp")


def mptcp_send(case: Case, _: Path) -> str:
    endpoints = (
        "ip mptcp limits set subflow 8 add_addr_accepted 8 && "
        "for i in $(seq 2 $ROPEWALK_PATHS); do "
        "eval ip mptcp endpoint add \\$ROPEWALK_LOCAL_$i dev \\$ROPEWALK_DEVICE_$i subflow || exit 1; done && "
    )
    return endpoints + tcp_send(case, 1, "--mptcp")


def ropewalk(paths: str, options: str = "") -> Transport:
    """Ours, sealed, with its default settings but for the receive buffer."""

    def receive(case: Case, out: Path) -> str:
        listen = " ".join(f"--listen {{local{path}}}" for path in paths)
        return (
            f"exec chrt --rr 40 {{binary}} bench serve --once {listen} --buffer '{case.buffer} B' "
            f"--key {out.parent}/far.key --allow $(cat {out.parent}/near.pub)"
        )

    def send(case: Case, out: Path) -> str:
        to = ",".join(f"{{remote{path}}}" for path in paths)
        own = ",".join(f"{{local{path}}}" for path in paths)
        return (
            f"exec chrt --rr 40 {{binary}} bench run --to {to} --from {own} --key {out.parent}/near.key "
            f"--peer $(cat {out.parent}/far.pub) --time '{case.seconds - case.warmup} s' "
            f"--warmup '{case.warmup} s' --json {options} > {out}"
        )

    name = "Ropewalk" if len(paths) > 1 else f"Ropewalk on path {paths}"
    return Transport(name + " in order" * ("--in-order" in options), receive, send)


def usrsctp(name: str, options: str = "") -> Transport:
    """The peer of tests/interop with usrsctp's own CMT, in the clear."""

    def line(case: Case, side: str) -> str:
        common = f"--message 1400 --sysctl sctp_cmt_on_off=1 --receive-buffer {case.buffer} {options}"
        return f"chrt --rr 40 {{usrsctp}} --bind {{local1}},{{local2}} {common} {side}"

    return Transport(
        name,
        lambda case, out: line(case, f"--server --warmup {case.warmup} > {out}"),
        # The other end has to be there first, and still has to say what it found.
        lambda case, _: "sleep 0.5; " + line(case, f"--connect {{remote1}},{{remote2}} --seconds {case.seconds} --finish shutdown") + "; sleep 1",
    )


TRANSPORTS = [
    ropewalk("12"),
    ropewalk("12", "--in-order"),
    ropewalk("1"),
    ropewalk("2"),
    tcp_on(1),
    tcp_on(2),
    Transport("Linux MPTCP", mptcp_receive, mptcp_send),
    usrsctp("usrsctp CMT", "--unordered"),
    usrsctp("usrsctp CMT in order"),
]


def size(text: str) -> int:
    number, unit = text.split()
    return round(float(number) * UNITS[unit])


def load(file: Path, arguments: argparse.Namespace) -> Case:
    transfer = tomllib.loads(file.read_text(encoding="utf-8"))["transfer"]
    buffer = size(transfer["receive_buffer"])
    return Case(file, buffer, arguments.seconds, arguments.warmup, arguments.congestion)


def keys(binary: Path, room: Path) -> list[str]:
    """Makes both ends' keys, `near` and `far`, with the public ones beside them; returns these."""
    public = []
    for side in ("near", "far"):
        made = subprocess.run([binary, "keygen", room / f"{side}.key"], capture_output=True, text=True, check=True)
        public.append(made.stdout.split()[-1])
        (room / f"{side}.pub").write_text(public[-1], encoding="ascii")
    return public


def lateness(stats: Path) -> float:
    """How late the emulator was at most, in seconds: with packets, or waking up."""
    figures = json.loads(stats.read_text(encoding="utf-8"))
    return max(figures[f"{kind}_lateness_s"]["max"] for kind in ("delivery", "waking"))


def emulate(binary: Path, scenario: Path, seed: int, lines: tuple[str, str], out: Path, limit: float) -> tuple[str, float]:
    """Runs a line at the receiver and one at the sender, which write `out`; its text, and how late the emulator was in seconds."""
    stats = out.parent / "stats.json"
    words = [binary, "emulate", scenario, "--quiet", "--seed", str(seed), "--stats", stats]
    words += ["--far", lines[0], "--", "sh", "-c", lines[1]]
    done = subprocess.run(words, timeout=limit, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not out.exists():
        raise SystemExit(f"{lines[1]}: status {done.returncode}\n{done.stderr}\n{scenario.read_text(encoding='utf-8')}")
    return out.read_text(encoding="utf-8"), lateness(stats)


def run(binary: Path, case: Case, transport: Transport, seed: int) -> tuple[dict, float]:
    """What was measured, and how late the emulator was, in seconds."""
    with tempfile.TemporaryDirectory() as room:
        out = Path(room) / "goodput.json"
        keys(binary, Path(room))
        lines = (transport.receive(case, out), transport.send(case, out))
        far, near = (line.replace("{binary}", str(binary.resolve())).replace("{usrsctp}", str(peers.USRSCTP)) for line in lines)
        text, late = emulate(binary, case.file, seed, (far, near), out, case.seconds + 30)
        found = json.loads(text[text.index("{") :])
        return found.get("received", found), late


def median(binary: Path, case: Case, transport: Transport, runs: int) -> str:
    good: list[float] = []
    held: list[float] = []
    worst, dropped = 0.0, 0
    for seed in range(1, runs + 1):
        for _ in range(TRIES):
            figures, late = run(binary, case, transport, seed)
            if late <= LATEST_S:
                good.append(figures["goodput_bps"])
                held.append(figures.get("receive_buffer", {}).get("mean_bytes", 0))
                worst = max(worst, late)
                break
            dropped += 1
    if not good:
        return f"always late ({dropped} runs)"
    note = f", {dropped} late" if dropped else ""
    spread = f"{min(good) / 1e6:.2f} to {max(good) / 1e6:.2f}"
    if transport.name.startswith("Ropewalk"):
        note = f", holds {statistics.median(held) / 1e3:.1f} kB{note}"
    return f"{statistics.median(good) / 1e6:.2f} ({spread}; {worst * 1e3:.1f} ms{note})"


def simulated(binary: Path, case: Case, unordered: bool) -> str:
    """The same engine with the same settings in the simulator, and the flow-control bound in user data."""
    words = [binary, "run", case.file, "--json", "--quiet", "--set", 'transfer.preset="live"']
    words += ["--set", f"transfer.unordered={str(unordered).lower()}"]
    words += ["--set", f"transfer.duration={case.seconds} s", "--set", f"transfer.warmup={case.warmup} s"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    bound = found["flow_control_bound_bps"] * PAYLOAD / 1500
    held = found["receive_buffer"]["mean_bytes"]
    return f"{found['goodput_bps'] / 1e6:.2f} (holds {held / 1e3:.1f} kB) | {bound / 1e6:.2f}"


def wanted(name: str, parts: list[str] | None) -> bool:
    return not parts or any(part in name for part in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--warmup", type=float, default=5.0)
    parser.add_argument("--congestion", default="cubic", help="congestion control of the TCP senders")
    parser.add_argument("--case", action="append", help="part of a file's name; all, if none is given")
    parser.add_argument("--transport", action="append", help="part of a name; all, if none is given")
    arguments = parser.parse_args()
    files = [file for file in sorted(HERE.glob("*.toml")) if wanted(file.stem, arguments.case)]
    transports = [t for t in TRANSPORTS if wanted(t.name, arguments.transport)]
    others = [t for t in transports if t.name.startswith("usrsctp")]
    if others and not peers.usrsctp():
        transports = [t for t in transports if t not in others]
    print("Goodput in Mbit/s: median (least to most; latest packet).\n")
    print("| case | in order, simulated | simulated | limit |", " | ".join(t.name for t in transports), "|")
    print("| --- | --- | --- | --- |", " | ".join("---" for _ in transports), "|")
    for file in files:
        case = load(file, arguments)
        ordered, unordered = (simulated(arguments.binary, case, kind) for kind in (False, True))
        print(f"| {case.name} | {ordered.split(' | ')[0]} | {unordered} |", end="", flush=True)
        for transport in transports:
            print(f" {median(arguments.binary, case, transport, arguments.runs)} |", end="", flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
