#!/usr/bin/env python3
"""Draws the figures of docs/concepts/coupling.md from the scenario on that page.

Needs the command and matplotlib: `python docs/images/make_coupling_plots.py --binary target/release/ropewalk`.
Prints the figures that the page quotes. Takes about a minute.
"""

import argparse
import csv
import json
import re
import subprocess
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "concepts" / "coupling.md"
NAMES = ["rfc9260", "newreno", "cubic", "lia", "olia", "balia", "fully-coupled"]
SHOWN = ["newreno", "cubic", "lia", "olia", "balia", "fully-coupled"]
SEEDS = range(1, 6)
LINK_BPS = 50e6
UNIT_BYTES = 1468
# A steady part of the run: slow start is over.
FROM_S, TO_S = 40.0, 70.0


def save(figure, name):
    """Writes a figure without the date and version that would change the file each time."""
    figure.savefig(HERE / name, dpi=100, metadata={"Software": None})
    plt.close(figure)
    print(f"  {name}: {(HERE / name).stat().st_size / 1000:.0f} kB")


def simulate(binary, scenario, congestion, seed, series=None):
    """The result of one run; its series go to the file `series`."""
    sets = [f"transfer.congestion={congestion}", f"transfer.seed={seed}", "record.interval=50ms"]
    command = [binary, "run", scenario, "--json"]
    for change in sets:
        command += ["--set", change]
    if series:
        command += ["--out", series]
    said = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(said.stdout)


def windows(binary, scenario, directory):
    """The windows of both paths, for each algorithm."""
    figure, panels = plt.subplots(3, 2, figsize=(9, 7.5), sharex=True, sharey=True, layout="constrained")
    for axes, name in zip(panels.flat, SHOWN):
        file = Path(directory) / f"{name}.csv"
        simulate(binary, scenario, name, 1, file)
        with open(file, encoding="utf-8", newline="") as text:
            rows = [row for row in csv.DictReader(text) if FROM_S <= float(row["time_s"]) <= TO_S]
        times = [float(row["time_s"]) for row in rows]
        for path, colour in [("one", "#1f77b4"), ("two", "#e07b39")]:
            axes.plot(times, [float(row[f"{path}.cwnd_bytes"]) / UNIT_BYTES for row in rows], color=colour,
                      linewidth=1, label=f"path {path}")  # fmt: skip
        axes.set_title(name, fontsize="medium")
        axes.grid(alpha=0.3)
    for axes in panels[:, 0]:
        axes.set_ylabel("window (packets)")
    for axes in panels[-1]:
        axes.set_xlabel("time (s)")
    panels[0][0].legend(fontsize="small")
    save(figure, "coupling-windows.png")


def shares(binary, scenario):
    """What the bundle has of the link beside four TCP flows: mean and range over seeds."""
    figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for name in NAMES:
        found = [simulate(binary, scenario, name, seed)["goodput_wire_bps"] / LINK_BPS for seed in SEEDS]
        mean = sum(found) / len(found)
        print(f"  {name}: {mean:.3f} of the link ({min(found):.3f} to {max(found):.3f})")
        axes.barh(name, mean, color="#1f77b4", xerr=[[mean - min(found)], [max(found) - mean]], capsize=3)
    axes.axvline(1 / 5, color="black", linewidth=1, linestyle="--", label="one flow's share")
    axes.axvline(2 / 6, color="#c0392b", linewidth=1, linestyle=":", label="two flows' share")
    axes.set(xlabel="share of the link", xlim=(0, 0.6))
    axes.invert_yaxis()
    axes.legend(fontsize="small", loc="lower right")
    save(figure, "coupling-shares.png")


def main():
    """Reads the scenario from the page and draws both figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", required=True, help="the ropewalk command")
    binary = parser.parse_args().binary
    text = re.search(r"```toml\n(# scenario: .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with tempfile.TemporaryDirectory() as directory:
        scenario = Path(directory) / "shared-bottleneck.toml"
        scenario.write_text(text[1], encoding="utf-8")
        windows(binary, scenario, directory)
        shares(binary, scenario)


if __name__ == "__main__":
    main()
