"""How long a client of a tunnel is without its hub: after a restart of the hub, and until it has moved to another one.

    sudo python3 benches/live/hubs.py --binary target/release/ropewalk [--runs 5]

Two hubs are in one network namespace, with ports of their own, and a client with one link is in another. The client pings an
address behind both every 20 ms. A gap is the time between two answers around the moment at which the first hub is killed.
"""

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from run import keys

LINK = {"far": "198.51.100.1", "near": "198.51.100.2"}
BEHIND = "192.0.2.1"
"""An address of the hubs' machine, which clients reach by each hub."""
PING_S = 0.02


def ip(line: str) -> None:
    subprocess.run(["ip", *line.split()], check=True)


def inside(namespace: str, line: str, log: Path) -> subprocess.Popen:
    with log.open("ab") as out:
        return subprocess.Popen(["ip", "netns", "exec", namespace, *line.split()], stdout=out, stderr=out)


class Room:
    """Namespaces, keys and files. They end with the block."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self.binary, self.folder = binary, folder
        self.name = f"rh{id(self):x}"[:10]
        keys(binary, folder)
        self.processes: list[subprocess.Popen] = []

    def __enter__(self) -> "Room":
        for side in LINK:
            ip(f"netns add {self.name}{side}")
            ip(f"-n {self.name}{side} link set lo up")
        ip(f"-n {self.name}far link add v0 type veth peer v0 netns {self.name}near")
        for side, address in LINK.items():
            ip(f"-n {self.name}{side} address add {address}/24 dev v0")
            ip(f"-n {self.name}{side} link set v0 up")
        ip(f"-n {self.name}far address add {BEHIND}/32 dev lo")
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for side in LINK:
            ip(f"netns del {self.name}{side}")

    def start(self, side: str, line: str, log: str) -> subprocess.Popen:
        process = inside(f"{self.name}{side}", f"{self.binary} tunnel {line}", self.folder / log)
        self.processes.append(process)
        return process

    def hub(self, number: int) -> subprocess.Popen:
        (self.folder / f"hub{number}.toml").write_text(f'network = ["10.{80 + number}.0.0/16"]\n', encoding="utf-8")
        public = (self.folder / "near.pub").read_text(encoding="utf-8").strip()
        line = f"serve {self.folder}/hub{number}.toml --key {self.folder}/far.key --allow {public} --listen {LINK['far']}:{9900 + number}"
        return self.start("far", f"{line} --state-directory {self.folder}/{number} --run-directory {self.folder}/run", f"hub{number}.log")

    def client(self, hubs: int) -> subprocess.Popen:
        public = (self.folder / "far.pub").read_text(encoding="utf-8").strip()
        more = "".join(f" --backup-hub {LINK['far']}:{9900 + number}={public}" for number in range(1, hubs))
        line = f"up --key {self.folder}/near.key --peer {public} --to {LINK['far']}:9900 --route {BEHIND}/32 --no-dns"
        return self.start("near", f"{line} --run-directory {self.folder}/near{more}", "client.log")

    def pings(self, seconds: float) -> subprocess.Popen:
        line = f"ping -D -n -i {PING_S} -c {round(seconds / PING_S)} -W 1 {BEHIND}"
        return inside(f"{self.name}near", line, self.folder / "pings")

    def answered(self) -> list[float]:
        """Times at which answers came, seconds since 1970."""
        lines = (self.folder / "pings").read_text(encoding="utf-8").splitlines()
        return [float(line.split("]")[0][1:]) for line in lines if line.startswith("[") and "time=" in line]


def gap(binary: Path, hubs: int) -> float:
    """Kills the first of so many hubs. A single one is started again at once. Returns the gap in seconds."""
    with tempfile.TemporaryDirectory() as folder, Room(binary, Path(folder)) as room:
        running = [room.hub(number) for number in range(hubs)]
        time.sleep(1.0)
        room.client(hubs)
        time.sleep(2.0)
        pings = room.pings(12.0)
        time.sleep(2.0)
        killed = time.time()
        running[0].kill()
        running[0].wait()
        if hubs == 1:
            room.hub(0)
        pings.wait()
        answered = room.answered()
        before = [at for at in answered if at < killed]
        after = [at for at in answered if at > killed + 0.05]
        if not (before and after):
            raise SystemExit((Path(folder) / "client.log").read_text(encoding="utf-8"))
        return after[0] - before[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    binary = arguments.binary.resolve()
    for hubs, what in [(1, "the hub is killed and started again"), (2, "the first of two hubs is killed")]:
        gaps = [gap(binary, hubs) for _ in range(arguments.runs)]
        print(f"{what}: without an answer for {statistics.median(gaps):.2f} s (median), {max(gaps):.2f} s (most) of {len(gaps)} runs")


if __name__ == "__main__":
    main()
