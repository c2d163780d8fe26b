#!/usr/bin/env python3
"""Draws the figure of docs/concepts/schedulers.md: all schedulers on one scenario.

Needs matplotlib and the command: `python3 docs/images/make_schedulers.py --binary target/release/ropewalk`.
Prints the figures that it draws. Takes some seconds.
"""

import argparse
import json
import subprocess
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
SCENARIO = HERE.parents[1] / "scenarios" / "wifi-lte.toml"
SEEDS = 5
COLOUR = "#1f77b4"


def compare(binary):
    """The summary and the first run of a comparison of all schedulers."""
    command = [binary, "compare", SCENARIO, "--seeds", str(SEEDS), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    first = document["runs"][0]
    limit = first["result"]["goodput_bps"] / first["result"]["share_of_bound"]
    best = document["summary"][0]["goodput_bps"]["mean"] / document["summary"][0]["gain"]["mean"]
    goodput = {row["label"]: row["goodput_bps"]["mean"] / 1e6 for row in document["summary"]}
    return goodput, best / 1e6, limit / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, type=Path)
    binary = parser.parse_args().binary.resolve()
    goodput, best, limit = compare(binary)
    names = sorted(goodput, key=goodput.get)
    figure, axes = plt.subplots(figsize=(7.5, 5.6), layout="constrained")
    axes.barh(range(len(names)), [goodput[name] for name in names], height=0.7, color=COLOUR)
    for name in names:
        print(f"  {name}: {goodput[name]:.2f} Mbit/s")
    axes.axvline(best, color="grey", linestyle="--", linewidth=1, label="best path alone")
    axes.axvline(limit, color="black", linestyle=":", linewidth=1, label="flow-control bound, headers off")
    print(f"  best path alone {best:.2f}, limit {limit:.2f}")
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel=f"goodput (Mbit/s), mean of {SEEDS} seeds", xlim=(0, limit * 1.03))
    figure.legend(fontsize="small", loc="outside upper center", ncols=4)
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(HERE / "schedulers.png", dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main()
