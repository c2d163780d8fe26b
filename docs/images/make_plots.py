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
SLIDES = str(ROOT / "papers" / "slides2013" / "tmaxblock-10-50-100.toml")
# Scenario, what it is called, buffer in kB, and how much of it fits into a picture.
CASES = [
    (SLIDES, "10 Mbit/s, 20 ms and 50 Mbit/s, 100 ms; 65 kB", 65, 0.3),
    (KUHN, "1 Mbit/s, 20 ms and 2 Mbit/s, 200 ms; 45 kB", 45, 0.8),
]
SCHEDULERS = ["round-robin", "lay"]
COLOURS = {"round-robin": "#c0392b", "lay": "#1f77b4", "fast": "#2e86ab", "slow": "#e07b39"}
# A steady part of the run: slow start is over.
FROM_S = 3.0


def save(figure, name):
    """Writes a figure without the date and version that would change the file each time."""
    figure.savefig(HERE / name, dpi=100, metadata={"Software": None})
    plt.close(figure)
    print(f"  {name}: {(HERE / name).stat().st_size / 1000:.0f} kB")


def run_cases():
    """Every case under every scheduler."""
    runs = {}
    for scenario, _, _, length_s in CASES:
        for name in SCHEDULERS:
            changes = {"record.interval": "2 ms", "transfer.duration": "30 s", "transfer.warmup": "5 s"}
            run = rw.run(scenario, scheduler=name, sequence=f"{FROM_S + length_s} s", set=changes)
            runs[scenario, name] = run
            print(f"  {Path(scenario).stem}, {name}: {run.goodput_wire_bps / 1e6:.2f} Mbit/s, "
                  f"{run.share_of_bound:.2f} of the limit, buffer {run.receive_buffer.mean_bytes / 1e3:.1f} kB mean, "
                  f"{run.receive_buffer.max_bytes / 1e3:.1f} kB peak")  # fmt: skip
    return runs


def sequence(runs):
    """Which packet comes when, on which path, and what the application has received by then."""
    figure, panels = plt.subplots(2, 2, figsize=(9, 6.6), layout="constrained")
    for row, (scenario, title, _, length_s) in zip(panels, CASES):
        for axes, name in zip(row, SCHEDULERS):
            shown = runs[scenario, name].sequence
            start = delivered_before(shown.delivered)
            for path, arrivals in shown.paths.items():
                chosen = within(arrivals, length_s)
                axes.plot((arrivals.time_s[chosen] - FROM_S) * 1e3, arrivals.seq[chosen] + 1.0 - start, "o",
                          markersize=2.5, color=COLOURS[path], label=f"arrives on the {path} path")  # fmt: skip
            chosen = within(shown.delivered, length_s)
            axes.step((shown.delivered.time_s[chosen] - FROM_S) * 1e3, shown.delivered.seq[chosen] - start,
                      where="post", color="black", linewidth=1, label="delivered in order")  # fmt: skip
            axes.set(xlabel="time (ms)", ylabel="packet")
            axes.set_title(f"{name}\n{title}", fontsize="medium")
            axes.grid(alpha=0.3)
    panels[0][0].legend(fontsize="small", loc="upper left")
    save(figure, "sequence.png")


def within(marks, length_s):
    """Which marks lie in the picture."""
    return (marks.time_s >= FROM_S) & (marks.time_s <= FROM_S + length_s)


def delivered_before(delivered):
    """What the application had when the picture begins."""
    before = delivered.seq[delivered.time_s < FROM_S]
    return float(before.max()) if len(before) else 0.0


def occupancy(runs):
    """What waits in the receive buffer."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for axes, (scenario, title, buffer_kb, length_s) in zip(panels, CASES):
        for name in SCHEDULERS:
            series = runs[scenario, name].series
            time, held = series["time_s"], series["receive_buffer_bytes"] / 1e3
            chosen = (time >= FROM_S) & (time <= FROM_S + length_s)
            axes.step((time[chosen] - FROM_S) * 1e3, held[chosen], where="post", linewidth=1.2,
                      color=COLOURS[name], label=name)  # fmt: skip
        axes.axhline(buffer_kb, color="grey", linestyle="--", linewidth=1, label="receive buffer")
        axes.set(xlabel="time (ms)", ylabel="held out of order (kB)", ylim=(0, None))
        axes.set_title(title, fontsize="medium")
        axes.grid(alpha=0.3)
    panels[1].legend(fontsize="small", loc="center right")
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
    axes.plot(sizes, limit, "--", color="black", label="flow-control bound")
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
    runs = run_cases()
    sequence(runs)
    occupancy(runs)
    goodput()
    blocking_time()


if __name__ == "__main__":
    main()
