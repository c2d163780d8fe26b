#!/usr/bin/env python3
"""Draws the figures of docs/concepts/models.md: the models against simulation, windows, and paths that change.

Needs matplotlib and the command: `python3 docs/images/make_models.py --binary target/release/ropewalk`.
Prints the figures that it draws. Takes some minutes.
"""

import argparse
import csv
import json
import subprocess
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
PAPER = HERE.parents[1] / "papers" / "wallace2014"
COLOURS = {"independent": "#1f77b4", "correlated": "#2e7d32", "renewal": "#e07b39", "pftk": "#8e44ad"}
LOSSES = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1]
SEEDS = 4
BUFFERS_KIB = list(range(16, 272, 8))
# The second path falls to a quarter for a while.
SLOW_FROM_S, SLOW_TO_S, END_S = 40, 80, 120
MANAGERS = {"none": "#777777", "static": "#e07b39", "adaptive": "#1f77b4"}
# Goodput is averaged over so many seconds, on both sides.
SMOOTHED_S = 2.0


class Command:
    """The command, and what it prints."""

    def __init__(self, binary):
        self.binary = binary

    def __call__(self, name, scenario, *options, sets=()):
        changes = [word for change in sets for word in ("--set", change)]
        command = [self.binary, name, PAPER / scenario, "--json", "-q", *options, *changes]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)


def save(figure, name):
    """Writes a figure without the date and version that would change the file each time."""
    figure.savefig(HERE / name, dpi=100, metadata={"Software": None})
    plt.close(figure)


def delivered(command, loss):
    """What one path delivers in simulation, headers included, Mbit/s: each of some seeds."""
    sets = [f"path.one.loss={loss}"]
    runs = (command("run", "one-path.toml", "--seed", str(seed), sets=sets) for seed in range(1, SEEDS + 1))
    return [run["goodput_wire_bps"] / 1e6 for run in runs]


def predicted(command, loss):
    """What the models say of it, Mbit/s."""
    path = command("predict", "one-path.toml", sets=[f"path.one.loss={loss}"])["paths"][0]
    found = {kind: path["markov_bps"][kind] / 1e6 for kind in ("independent", "correlated")}
    return found | {name: path[f"{name}_bps"] / 1e6 for name in ("renewal", "pftk")}


def models(command):
    """Throughput of one path over its loss, by the models and in simulation."""
    simulated = [delivered(command, loss) for loss in LOSSES]
    means = [sum(runs) / len(runs) for runs in simulated]
    said = [predicted(command, loss) for loss in LOSSES]
    labels = {"independent": "Markov chain", "correlated": "Markov, correlated", "renewal": "renewal", "pftk": "PFTK"}
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
    for name, label in labels.items():
        curve = [point[name] for point in said]
        left.loglog(LOSSES, curve, color=COLOURS[name], label=label)
        ratio = [100 * (value / mean - 1) for value, mean in zip(curve, means)]
        right.semilogx(LOSSES, ratio, "o-", markersize=4, color=COLOURS[name], label=label)
        print(f"  {label} over simulation:", ", ".join(f"{p:g}: {r:+.1f} %" for p, r in zip(LOSSES, ratio)))
    spread = [[mean - min(runs) for mean, runs in zip(means, simulated)],
              [max(runs) - mean for mean, runs in zip(means, simulated)]]  # fmt: skip
    left.errorbar(LOSSES, means, yerr=spread, fmt="ko", markersize=4, capsize=3, label=f"simulated, {SEEDS} seeds")
    print("  simulated:", ", ".join(f"{p:g}: {m:.2f}" for p, m in zip(LOSSES, means)))
    right.axhline(0, color="black", linewidth=1)
    left.set(xlabel="loss p", ylabel="throughput (Mbit/s)")
    right.set(xlabel="loss p", ylabel="model over simulation (%)")
    left.legend(fontsize="small")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    save(figure, "models-loss.png")


def windows(command):
    """Best window limits of two paths, and what they promise, over the receive buffer."""
    found = [command("tune", "two-paths.toml", sets=[f"transfer.receive_buffer={k} KiB"]) for k in BUFFERS_KIB]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
    for i, (label, colour) in enumerate([("first: one loss in 1000", "#1f77b4"), ("second: one in 10 000", "#e07b39")]):
        limits = [tuned["limits_packets"][i] for tuned in found]
        left.step(BUFFERS_KIB, limits, where="mid", color=colour, label=label)
        print(f"  limits of path {i + 1}:", ", ".join(f"{k} KiB {w}" for k, w in zip(BUFFERS_KIB, limits)))
    best = [tuned["predicted_bps"] / 1e6 for tuned in found]
    equal = [tuned["equal_split"]["predicted_bps"] / 1e6 for tuned in found]
    right.plot(BUFFERS_KIB, best, color="#1f77b4", label="best windows")
    right.plot(BUFFERS_KIB, equal, "--", color="#777777", label="equal split")
    gain, at = max((b / e - 1, k) for b, e, k in zip(best, equal, BUFFERS_KIB))
    print(f"  most gained over equal windows: {100 * gain:.1f} % at {at} KiB")
    left.set(xlabel="receive buffer (KiB)", ylabel="best window (packets)", ylim=(0, None))
    right.set(xlabel="receive buffer (KiB)", ylabel="predicted throughput (Mbit/s)", ylim=(0, None))
    for axes in (left, right):
        axes.legend(fontsize="small")
        axes.grid(alpha=0.3)
    save(figure, "models-windows.png")


def smoothed(file):
    """Time and goodput of a series, the latter as a moving mean in Mbit/s."""
    with open(file, newline="") as lines:
        rows = [(float(row["time_s"]), float(row["goodput_bps"]) / 1e6) for row in csv.DictReader(lines)]
    step = rows[1][0] - rows[0][0]
    reach = round(SMOOTHED_S / step)
    values = [value for _, value in rows]
    near = (values[max(0, i - reach) : i + reach + 1] for i in range(len(values)))
    return [time for time, _ in rows], [sum(part) / len(part) for part in near]


def changes(command):
    """Goodput while the second path has a quarter of its rate."""
    steps = f'[{{ at = "{SLOW_FROM_S} s", rate = "5 Mbit/s" }}, {{ at = "{SLOW_TO_S} s", rate = "20 Mbit/s" }}]'
    usual = [f"transfer.duration={END_S} s", "record.interval=200ms"]
    limits = command("tune", "two-paths.toml", sets=usual)["limits_packets"]
    static = [f"path[{i}].window_limit={limit} packets" for i, limit in enumerate(limits)]
    figure, axes = plt.subplots(figsize=(8, 3.8), layout="constrained")
    for manager, colour in MANAGERS.items():
        sets = [*usual, f"path.second.steps={steps}", f"transfer.window_manager={manager}"]
        sets += static if manager == "static" else []
        runs, curves = [], []
        for seed in range(1, SEEDS + 1):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "series.csv"
                runs.append(command("run", "two-paths.toml", "--seed", str(seed), "--out", file, sets=sets))
                time, curve = smoothed(file)
            curves.append(curve)
        mean = [sum(at) / len(at) for at in zip(*curves)]
        axes.plot(time, mean, color=colour, label=manager)
        goodput = sum(run["goodput_bps"] for run in runs) / len(runs) / 1e6
        slow = [g for t, g in zip(time, mean) if SLOW_FROM_S + 5 <= t <= SLOW_TO_S]
        print(f"  {manager}: {goodput:.2f} Mbit/s, while the path is slow {sum(slow) / len(slow):.2f}")
    axes.axvspan(SLOW_FROM_S, SLOW_TO_S, color="#eeeeee", zorder=0, label="second path: 5 Mbit/s")
    axes.set(xlabel="time (s)", ylabel=f"goodput (Mbit/s), mean of {SEEDS} seeds", ylim=(0, None), xlim=(0, END_S))
    axes.legend(fontsize="small", ncols=2, loc="lower left")
    axes.grid(alpha=0.3)
    save(figure, "models-changes.png")


def main():
    """Draws everything, or what is named."""
    figures = {"loss": models, "windows": windows, "changes": changes}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True, type=Path)
    parser.add_argument("figures", nargs="*", help=f"of {', '.join(figures)}; all unless named")
    arguments = parser.parse_args()
    command = Command(arguments.binary.resolve())
    for name in arguments.figures or figures:
        figures[name](command)


if __name__ == "__main__":
    main()
