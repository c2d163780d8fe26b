"""What a tunnel costs: CPU time per GB over a virtual wire without a rate, the processes of both ends together.

    sudo python3 benches/live/tunnel_cpu.py --binary target/release/ropewalk [--runs 3] [--seconds 5] [--contender NAME]

Two network namespaces, a pair of virtual devices between them (1500 B), one TCP connection with CUBIC through the tunnel.
Contenders: the tunnel, and wireguard-go if it is installed. They take turns, and the medians are shown. The CPU time is that of
the tunnel's processes, without the ends of the connection.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from cpu import FAR, FROM, NEAR, TO, set_up, tear_down
from process_times import ProcessTimes, is_tunnel, is_wireguard
from run import STREAM, keys, wanted
from tunnel import BUFFER, INNER_HUB, PORT, Contender, tunnel_far, tunnel_near, until_answered, wireguard, wireguard_keys

WARMUP_S = 1.0


def tunnel_over_wire(room: Path) -> str:
    return tunnel_near(room, f"--to {TO} --from {FROM}")


def wireguard_line(room: Path, side: str) -> str:
    # In the foreground, so that it ends with the run.
    background = wireguard(room, side).replace("wireguard-go wg", "wireguard-go -f wg", 1)
    start, _, rest = background.partition(" && ")
    return f"{start} 2>/dev/null & sleep 0.5; {rest.replace('{remote1}', TO)}"


CONTENDERS = [
    Contender("Ropewalk", tunnel_far, tunnel_over_wire, INNER_HUB, process=is_tunnel),
    Contender(
        "wireguard-go",
        lambda room: wireguard_line(room, "far"),
        lambda room: wireguard_line(room, "near"),
        "10.66.0.2",
        process=is_wireguard,
    ),
]


def run(binary: Path, contender: Contender, seconds: float) -> tuple[float, float]:
    """Goodput in bit/s, and CPU seconds per GB."""
    assert contender.process
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        out = room / "goodput.json"
        keys(binary, room)
        subprocess.run(["sh", "-c", wireguard_keys(room)], check=True)
        times = f"--seconds {seconds + WARMUP_S} --warmup {WARMUP_S}"
        end = "trap 'kill $(jobs -p) 2>/dev/null' EXIT; "
        far = f"{end}{contender.far(room)} {STREAM} recv --port {PORT} --buffer {BUFFER} {times} --out {out}"
        send = f"{STREAM} send --port {PORT} --to {contender.to} --seconds {seconds + WARMUP_S} --congestion cubic"
        near = f"{end}{contender.near(room)} {until_answered(contender.to)} {send}"
        with ProcessTimes(contender.process) as used:
            ends = []
            for space, line in ((FAR, far), (NEAR, near)):
                line = line.replace("{binary}", str(binary))
                ends.append(subprocess.Popen(["ip", "netns", "exec", space, "bash", "-c", line]))
                time.sleep(0.3)
            for one in ends:
                one.wait(timeout=seconds + 60)
        figures = json.loads(out.read_text(encoding="utf-8"))
        # All of the CPU time, and all that was delivered, that of the warm-up included.
        delivered = figures["bytes"] * (seconds + WARMUP_S) / seconds
        return figures["goodput_bps"], used.seconds / (delivered / 1e9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--contender", action="append", help="part of a name; all, if none is given")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("network namespaces need root: run it with sudo")
    contenders = [one for one in CONTENDERS if wanted(one.name, arguments.contender)]
    if not (shutil.which("wireguard-go") and shutil.which("wg")):
        print("wireguard-go is not installed; left out\n")
        contenders = [one for one in contenders if one.name != "wireguard-go"]
    found: dict[str, list[tuple[float, float]]] = {one.name: [] for one in contenders}
    tear_down()
    set_up()
    try:
        for _ in range(arguments.runs):
            for contender in contenders:
                found[contender.name].append(run(arguments.binary.resolve(), contender, arguments.seconds))
    finally:
        tear_down()
    print("| tunnel | Gbit/s | CPU s/GB |")
    print("| --- | --- | --- |")
    for name, runs in found.items():
        rate, cost = (statistics.median(column) for column in zip(*runs, strict=True))
        print(f"| {name} | {rate / 1e9:.2f} | {cost:.2f} |")


if __name__ == "__main__":
    main()
