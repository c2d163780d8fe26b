#!/usr/bin/env python3
"""Draws the figures of docs/concepts/blocking.md from simulations and closed forms.

Needs the Python package and matplotlib: `make python`, then `.venv/bin/python docs/images/make_plots.py`.
Prints the figures that the page quotes. Takes about a minute.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import ropewalk as rw

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
KUHN = str(ROOT / "scenarios" / "kuhn-2-200-45.toml")
SCHEDULERS = ["round-robin", "daps"]
COLOURS = {"round-robin": "#c0392b", "daps": "#1f77b4", "fast": "#2e86ab", "slow": "#e07b39"}
# A steady part of the run: slow start is long over.
FROM_S, LENGTH_S = 10.0, 0.8


def save(figure, name):
    """Writes a figure without the date and version that would change the file each time."""
    figure.savefig(HERE / name, dpi=110, metadata={"Software": None})
    plt.close(figure)
    print(f"  {name}: {(HERE / name).stat().st_size / 1000:.0f} kB")


def sequence(runs):
    """Which packet comes when, on which path, and what the application has received by then."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=False)
    for axes, name in zip(panels, SCHEDULERS):
        shown = runs[name].sequence
        inside = lambda arrivals: (arrivals.time_s >= FROM_S) & (arrivals.time_s <= FROM_S + LENGTH_S)
        first = shown.delivered.seq[inside(shown.delivered)].min()
        for path, arrivals in shown.paths.items():
            chosen = inside(arrivals)
            axes.plot((arrivals.time_s[chosen] - FROM_S) * 1e3, arrivals.seq[chosen] - float(first), "o",
                      markersize=3, color=COLOURS[path], label=f"arrives on the {path} path")  # fmt: skip
        chosen = inside(shown.delivered)
        axes.step((shown.delivered.time_s[chosen] - FROM_S) * 1e3, shown.delivered.seq[chosen] - float(first),
                  where="post", color="black", linewidth=1, label="delivered in order")  # fmt: skip
        axes.set(title=name, xlabel="time (ms)", ylabel="packet number")
        axes.grid(alpha=0.3)
    panels[0].legend(fontsize="small", loc="upper left")
    save(figure, "sequence.png")


def occupancy(runs):
    """What waits in the receive buffer."""
    figure, axes = plt.subplots(figsize=(9, 2.8), layout="constrained")
    for name in SCHEDULERS:
        series = runs[name].series
        time, held = series["time_s"], series["receive_buffer_bytes"] / 1e3
        chosen = (time >= 0.0) & (time <= 5.0)
        axes.step(time[chosen], held[chosen], where="post", linewidth=1, color=COLOURS[name], label=name)
    axes.axhline(45, color="grey", linestyle="--", linewidth=1, label="receive buffer")
    axes.set(xlabel="time (s)", ylabel="held out of order (kB)", ylim=(0, None))
    axes.legend(fontsize="small", loc="center right")
    axes.grid(alpha=0.3)
    save(figure, "occupancy.png")


def goodput():
    """Goodput over the size of the receive buffer, beside the limit."""
    sizes = [15, 21, 27, 33, 39, 45, 54, 63, 75, 90, 120]
    figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
    limit = None
    for name in SCHEDULERS:
        values = {"transfer.receive_buffer": [f"{size} kB" for size in sizes]}
        batch = rw.compare(KUHN, vary=values, set={"transfer.scheduler": name}, series=False)
        runs = list(batch)
        reached = [run.goodput_wire_bps / 1e6 for run in runs]
        limit = [run.flow_control_bound_bps / 1e6 for run in runs]
        axes.plot(sizes, reached, "o-", markersize=4, color=COLOURS[name], label=name)
        print(f"  {name}:", ", ".join(f"{s} kB {r:.2f}" for s, r in zip(sizes, reached)))
    print("  limit:", ", ".join(f"{s} kB {r:.2f}" for s, r in zip(sizes, limit)))
    axes.plot(sizes, limit, "--", color="black", label="physical limit")
    axes.axvline(75, color="grey", linestyle=":", linewidth=1)
    axes.annotate("Eq 3: 75 kB", (75, 0.35), xytext=(4, 0), textcoords="offset points", fontsize="small")
    axes.set(xlabel="receive buffer (kB)", ylabel="goodput with headers (Mbit/s)", ylim=(0, 3.2))
    axes.legend(fontsize="small", loc="lower right")
    axes.grid(alpha=0.3)
    save(figure, "goodput-buffer.png")


def blocking_time():
    """The longest wait in closed form, and what round robin makes a packet wait in the simulator."""
    figure, axes = plt.subplots(figsize=(7, 3.8), layout="constrained")
    slow_rtt = np.linspace(0.02, 0.3, 57)
    for (fast, slow), colour in zip([(50, 10), (100, 100), (10, 50)], ["#c0392b", "#1f77b4", "#2e7d32"]):
        rtt = np.stack([np.full(slow_rtt.shape, 0.02), slow_rtt], axis=-1)
        closed = rw.models.blocking_time_max_s([fast * 1e6, slow * 1e6], rtt)
        axes.plot(slow_rtt * 1e3, closed * 1e3, color=colour, label=f"{fast} and {slow} Mbit/s")
        for milliseconds in (100, 200):
            file = ROOT / "papers" / "slides2013" / f"tmaxblock-{fast}-{slow}-{milliseconds}.toml"
            longest = rw.run(str(file), series=False).blocking_time_s.max
            axes.plot(milliseconds, longest * 1e3, "x", color=colour)
            print(f"  {file.stem}: simulated {longest * 1e3:.1f} ms")
    axes.plot([], [], "x", color="grey", label="simulated, round robin")
    axes.set(xlabel="round trip of the slow path (ms); fast path 20 ms", ylabel="longest wait (ms)", ylim=(0, None))
    axes.legend(fontsize="small", loc="upper left")
    axes.grid(alpha=0.3)
    save(figure, "blocking-time.png")


def main():
    """Draws everything."""
    changes = {"record.interval": "10 ms"}
    length = f"{FROM_S + LENGTH_S} s"
    runs = {name: rw.run(KUHN, scheduler=name, sequence=length, set=changes) for name in SCHEDULERS}
    for name, run in runs.items():
        print(f"  {name}: {run.goodput_wire_bps / 1e6:.2f} Mbit/s, {run.share_of_bound:.2f} of the limit, "
              f"buffer {run.receive_buffer.mean_bytes / 1e3:.1f} kB mean, shut for {run.receive_buffer.blocked_s:.1f} s")  # fmt: skip
    sequence(runs)
    occupancy(runs)
    goodput()
    blocking_time()


if __name__ == "__main__":
    main()
