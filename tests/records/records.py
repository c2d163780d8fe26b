#!/usr/bin/env python3
"""Records of real TCP senders over links that are drawn, and what `ropewalk measure` makes of them.

    sudo python3 tests/records/records.py --binary target/release/ropewalk --draws 20

Each draw emulates one link, lets iperf3 send over it, captures the packets at the sender or at the receiver, and compares what
`measure --from-pcap` and `--from-iperf3` write with the link, with the emulator's own counts of its drops, and with a run of the
written scenario. Needs Linux, root, iperf3 and dumpcap (Wireshark). Prints a line for each record and, at the end, how many are right.
"""

import argparse
import dataclasses
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

RATE_MBPS = (2.0, 50.0)
RETURN_SHARE = (1 / 40, 1 / 5)
RTT_MS = (10.0, 200.0)
QUEUE_S = (0.04, 0.3)
LOSS = (1e-4, 1e-2)
PACKET, ACK = 1500, 52
FULL_SHARE = 0.9
"""A sender that carries less than this share of the rate does not show the rate."""


@dataclasses.dataclass
class Link:
    """A link, and its sender."""

    rate_mbps: float
    down_mbps: float
    rtt_ms: float
    queue_bytes: int
    loss: float
    congestion: str
    at_receiver: bool

    def scenario(self) -> str:
        loss = f"loss = {self.loss:.6f}\n" if self.loss else ""
        return (
            '[transfer]\nprotocol = "cmt-sctp"\n\n[[path]]\n'
            f'rate = "{self.rate_mbps:.3f} Mbit/s"\nrate_down = "{self.down_mbps:.3f} Mbit/s"\nrtt = "{self.rtt_ms:.3f} ms"\n'
            f'queue = "{self.queue_bytes} B"\n{loss}'
        )

    def seen_rtt_ms(self) -> float:
        """The round trip with the time that an acknowledgement takes to enter the return link, which no record tells apart."""
        return self.rtt_ms + ACK * 8e-3 / self.down_mbps


def between(draw: random.Random, bounds: tuple[float, float]) -> float:
    """Evenly in the logarithm."""
    low, high = bounds
    return low * (high / low) ** draw.random()


def drawn(seed: int) -> Link:
    draw = random.Random(seed)
    rate = between(draw, RATE_MBPS)
    return Link(
        rate_mbps=rate,
        down_mbps=rate * between(draw, RETURN_SHARE),
        rtt_ms=between(draw, RTT_MS),
        queue_bytes=max(20 * PACKET, round(rate * 1e6 / 8 * between(draw, QUEUE_S))),
        loss=between(draw, LOSS) if draw.random() < 0.5 else 0.0,
        congestion=draw.choice(["cubic", "bbr"]),
        at_receiver=draw.random() < 0.5,
    )


def record(binary: Path, link: Link, seconds: float, place: Path) -> dict:
    """Makes the records in `place`, and returns the emulator's counts."""
    (place / "link.toml").write_text(link.scenario())
    capture = f"dumpcap -q -s 128 -w {place}/record.pcap"
    far = ["--far", "iperf3 -s -1"]
    near = f"sleep 1; iperf3 -c {{remote1}} -t {seconds} -C {link.congestion} --json > {place}/iperf3.json; sleep 1"
    if link.at_receiver:
        far += ["--far", f"exec {capture} -i {{device1}}"]
    else:
        near = f"{capture} -i {{device1}} & {near}; kill $!; wait"
    subprocess.run(
        [binary, "emulate", place / "link.toml", "--stats", place / "stats.json", "-q", *far, "--", "sh", "-c", near],
        check=True, capture_output=True, timeout=seconds + 60,
    )
    return json.loads((place / "stats.json").read_text())


def measured(binary: Path, *options: str) -> str:
    command = [binary, "measure", "-q", *options]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout


def number(text: str) -> float:
    """Mbit/s, ms or bytes of a quantity with its unit."""
    value, unit = text.split()
    return float(value) * {"Mbit/s": 1, "kbit/s": 1e-3, "Gbit/s": 1e3, "ms": 1, "B": 1}[unit]


@dataclasses.dataclass
class Verdict:
    """What is right in a record; None where the record cannot show it."""

    losses: bool | None
    rate: bool | None
    rtt: bool
    queue: bool | None
    run: bool
    """Within 5 % of the record in the mean of the seeds, or the record is within their range."""
    said: str


def judged(binary: Path, link: Link, stats: dict, place: Path) -> Verdict:
    text = measured(binary, "--from-pcap", str(place / "record.pcap"))
    path = tomllib.loads(text)["path"][0]
    dropped = stats["paths"][0]["up"]["dropped"]
    true_losses = dropped["full"] + dropped["loss"]
    lost = sum(int(count) for count in re.findall(r"^# (\d+) (?:of \d+ )?segments", text, re.MULTILINE))
    document = json.loads((place / "iperf3.json").read_text())
    again = document["end"]["sum_sent"]["retransmits"]
    found = re.search(r"The record carried (\S+ \S+) with headers", text)
    recorded = number(found[1])
    ran = re.search(r"carries (\S+ \S+bit/s)(?:, (\S+ \S+) to (\S+ \S+) with)?", text)
    least, mean, most = (number(ran[group] or ran[1]) for group in (2, 1, 3))
    rate, rtt = number(path["rate"]), number(path["rtt"])
    filled = recorded >= FULL_SHARE * link.rate_mbps
    queue = number(path["queue"]) if "queue" in path and "Lower bound" not in text else None
    return Verdict(
        # The sender may send again what was not lost.
        losses=lost == true_losses if again == true_losses else None,
        rate=abs(rate / link.rate_mbps - 1) <= 0.02 if filled else None,
        rtt=abs(rtt - link.seen_rtt_ms()) <= max(1.0, 0.02 * link.seen_rtt_ms()),
        queue=None if queue is None else abs(queue / link.queue_bytes - 1) <= 0.15,
        run=abs(mean / recorded - 1) <= 0.05 or least <= recorded <= most,
        said=(
            f"{lost} of {true_losses} losses ({dropped['full']} full, {again} sent again), rate {rate:.2f} of {link.rate_mbps:.2f}, "
            f"rtt {rtt:.1f} of {link.seen_rtt_ms():.1f}, queue {queue or '-'} of {link.queue_bytes}, carried {recorded:.2f}, "
            f"run {mean:.2f} ({least:.2f} to {most:.2f})"
        ),
    )


def missing() -> str | None:
    """Why nothing can be tried here."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "needs Linux and root"
    for program in ("iperf3", "dumpcap"):
        if shutil.which(program) is None:
            return f"needs `{program}`"
    return None


def judge(binary: Path, link: Link, seconds: float) -> Verdict:
    with tempfile.TemporaryDirectory(prefix="records-") as scratch:
        place = Path(scratch)
        stats = record(binary, link, seconds, place)
        return judged(binary, link, stats, place)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first draw")
    parser.add_argument("--seconds", type=float, default=12)
    arguments = parser.parse_args()
    if reason := missing():
        print(f"records: {reason}")
        return 0
    verdicts = []
    for seed in range(arguments.seed, arguments.seed + arguments.draws):
        link = drawn(seed)
        verdict = judge(arguments.binary.resolve(), link, arguments.seconds)
        verdicts.append(verdict)
        wrong = [field for field in ("losses", "rate", "rtt", "queue", "run") if getattr(verdict, field) is False]
        side = "receiver" if link.at_receiver else "sender"
        print(f"{seed}: {link.congestion}, loss {link.loss:.4f}, at the {side}: {verdict.said}: {' '.join(wrong) or 'right'}", flush=True)
    for field in ("losses", "rate", "rtt", "queue", "run"):
        known = [value for verdict in verdicts if (value := getattr(verdict, field)) is not None]
        print(f"{field}: {sum(known)} of {len(known)} right")
    return 0


if __name__ == "__main__":
    sys.exit(main())
