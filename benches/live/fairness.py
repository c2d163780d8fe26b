"""How many senders share one server and one link: Jain's index of what each of them delivers.

    sudo python3 benches/live/fairness.py --binary target/release/ropewalk [--clients 100] [--seconds 40]

Each client is a process of its own, with one sealed association to one server over the same emulated link.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from run import keys

SCENARIO = """
[transfer]
duration = "60 s"
receive_buffer = "1 MB"
[[path]]
name = "shared"
rate = "{rate} Mbit/s"
rtt = "20 ms"
queue = "{queue} packets"
"""


def jain(shares: list[float]) -> float:
    """1 if all are equal, 1/n if one has everything (Jain, Chiu and Hawe, 1984)."""
    return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))


def clients(arguments: argparse.Namespace) -> None:
    """Runs in the near end's namespace."""
    line = [arguments.binary, "bench", "run", "--to", arguments.clients_of, "--key", f"{arguments.room}/near.key"]
    line += ["--peer", Path(arguments.room, "far.pub").read_text(encoding="utf-8"), "--json"]
    line += ["--time", f"{arguments.seconds} s", "--warmup", f"{arguments.warmup} s"]
    running = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True) for _ in range(arguments.clients)]
    said = [process.communicate()[0] for process in running]
    found = [json.loads(text)["goodput_bps"] if text else 0.0 for text in said]
    Path(arguments.room, "goodputs.json").write_text(json.dumps(found), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--warmup", type=float, default=10.0, help="longer than it takes to start all clients")
    parser.add_argument("--rate", type=float, default=200.0, help="of the link, Mbit/s")
    parser.add_argument("--queue", type=int, default=400, help="of the link, packets")
    parser.add_argument("--clients-of", help=argparse.SUPPRESS)
    parser.add_argument("--room", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.binary = arguments.binary.resolve()
    if arguments.clients_of:
        clients(arguments)
        return
    with tempfile.TemporaryDirectory() as room:
        keys(arguments.binary, Path(room))
        scenario = Path(room, "shared.toml")
        scenario.write_text(SCENARIO.format(rate=arguments.rate, queue=arguments.queue), encoding="utf-8")
        far = f"exec chrt --rr 40 {arguments.binary} bench serve --listen {{local1}} --buffer '1 MB' --key {room}/far.key "
        far += f"--allow $(cat {room}/near.pub)"
        near = f"exec {sys.executable} {Path(__file__).resolve()} --binary {arguments.binary} --clients {arguments.clients} "
        near += f"--seconds {arguments.seconds} --warmup {arguments.warmup} --clients-of {{remote1}} --room {room}"
        line = [arguments.binary, "emulate", scenario, "--quiet", "--stats", f"{room}/stats.json", "--far", far, "--", "sh", "-c", near]
        subprocess.run(line, check=True)
        shares = json.loads(Path(room, "goodputs.json").read_text(encoding="utf-8"))
        late = json.loads(Path(room, "stats.json").read_text(encoding="utf-8"))["delivery_lateness_s"]["max"]
    print(f"{len(shares)} associations over {arguments.rate:g} Mbit/s, {arguments.seconds:g} s: Jain's index {jain(shares):.3f}")
    print(f"together {sum(shares) / 1e6:.1f} Mbit/s; least {min(shares) / 1e6:.2f}, most {max(shares) / 1e6:.2f}")
    print(f"the emulator's latest packet: {late * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
