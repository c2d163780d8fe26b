#!/usr/bin/env python3
"""Draws the figure of docs/concepts/recovery.md: goodput against reordering, one line per rule.

Needs matplotlib and a binary: `cargo build --release -p ropewalk-cli`, then
`docs/images/make_recovery.py --binary target/release/ropewalk`. Prints the figures that the page quotes.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
RULES = ["none", "f-rto", "tcp-door", "d-sack", "eifel", "rack-tlp"]
COLOURS = ["#7f8c8d", "#8e44ad", "#e07b39", "#2e86ab", "#27ae60", "#c0392b"]
# A packet in a hundred falls behind by so much, ms, on a path with a round trip of 40 ms.
LAGS_MS = [0, 1, 2, 4, 6, 8, 10, 15, 20, 25, 30, 35, 40, 50, 60]
SEEDS = range(1, 4)
SCENARIO = """
[transfer]
protocol = "tcp"
duration = "30 s"
warmup = "5 s"
receive_buffer = "4 MB"
seed = {seed}
[tcp]
recovery = "{rule}"
[[path]]
name = "link"
rate = "20 Mbit/s"
rtt = "40 ms"
queue = "100 packets"
reorder = {{ probability = 0.01, delay = "{lag} ms" }}
"""


def goodput(binary, rule, lag, seed):
    """Mbit/s of user data."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(SCENARIO.format(rule=rule, lag=lag, seed=seed))
        file.flush()
        done = subprocess.run([binary, "run", "--json", file.name], capture_output=True, check=True)
    return json.loads(done.stdout)["goodput_bps"] / 1e6


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--binary", required=True)
    binary = arguments.parse_args().binary
    figure, axes = plt.subplots(figsize=(8, 4.4), layout="constrained")
    for rule, colour in zip(RULES, COLOURS):
        found = [sum(goodput(binary, rule, lag, seed) for seed in SEEDS) / len(SEEDS) for lag in LAGS_MS]
        print(f"{rule:9}", " ".join(f"{x:6.2f}" for x in found))
        # It lies on the line of `none`.
        style = "--" if rule == "f-rto" else "-"
        axes.plot(LAGS_MS, found, style, label=rule, color=colour, linewidth=2)
    axes.axvline(40, color="#bbbbbb", linestyle="--", linewidth=1)
    axes.text(40.5, 0.4, "round trip", color="#777777")
    axes.set(xlabel="how far one packet in a hundred falls behind, ms", ylabel="goodput, Mbit/s", ylim=(0, 20))
    axes.grid(alpha=0.3)
    axes.legend(ncols=3, loc="center left", bbox_to_anchor=(0.05, 0.43))
    figure.savefig(HERE / "recovery.png", dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main()
