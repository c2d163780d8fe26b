#!/usr/bin/env python3
"""Draws the figure of docs/concepts/reordering-over-wifi.md and, with `--sweep`, writes docs/data/wifi-readings.csv.

Needs matplotlib and a binary: `cargo build --release -p ropewalk-cli`, then
`docs/images/make_reordering_over_wifi.py --binary target/release/ropewalk`.
"""

import argparse
import csv
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAPER = HERE.parent.parent / "papers" / "alheid2016"
DATA = HERE.parent / "data" / "wifi-readings.csv"
COMMAND = "python3 docs/images/make_reordering_over_wifi.py --binary target/release/ropewalk --sweep"
RECOVERIES = {"NoPR": "none", "D-SACK": "d-sack", "Eifel": "eifel", "TCP-DOOR": "tcp-door", "F-RTO": "f-rto"}
COUPLINGS = {"coupled": "lia", "uncoupled": "newreno", "fully-coupled": "fully-coupled"}
SEEDS = range(1, 11)
BURST = "tcp.ack_burst_loss"
DRAWN = "tcp.ack_burst_loss_max"
WAITS = "tcp.data_waits"


def both(key, value):
    """The same on both links."""
    return {f"path.{link}.wifi.{key}": value for link in ("wlan1", "wlan2")}


# What is chosen otherwise than by the readings of papers/alheid2016; none takes a setting away.
CHOICES = {
    "as chosen": {},
    "data flows from server to mobile node": both("end", "receiver"),
    "one channel": {"path.wlan2.wifi.channel": "1"},
    "queues of 100 packets": both("queue", "100 packets"),
    "slots of 9 us in 802.11g": {"station": "[]"},
    "data begins on the first subflow": {WAITS: "false"},
    "no acknowledgement lost": {DRAWN: None},
    "3 % of the acknowledgements begin a burst": {DRAWN: None, BURST: "0.03"},
    "timeout of ns-3": {"tcp.rto_formula": "ns-3"},
    "1 % of the frames damaged": both("frame_error", "0.01"),
    "5 % of the frames damaged": both("frame_error", "0.05"),
    "10 % of the frames damaged": both("frame_error", "0.1"),
}


def json_of(*command):
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def printed():
    """Ratio and buffer in bytes of each cell."""
    lines = (PAPER / "numbers.csv").read_text().splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    key = lambda row: (int(row["scenario"]), row["recovery"], row["coupling"])
    return {key(row): (float(row["ratio_percent"]) / 100, float(row["buffer_kib"]) * 1024) for row in rows}


def cell(binary, key, choice):
    """Means of ratio and buffer over the seeds."""
    scenario, recovery, coupling = key
    rule = RECOVERIES[recovery]
    sets = {
        "transfer.congestion": COUPLINGS[coupling],
        "transfer.packet": "1476 B" if rule == "eifel" else "1464 B",
        "tcp.recovery": rule,
    }
    sets |= {"transfer.scheduler": "round-robin", "transfer.preset": "chihani2011", WAITS: "true", DRAWN: "0.061"} | choice
    if rule != "f-rto":
        sets |= {BURST: None, DRAWN: None}
    sets = {key: value for key, value in sets.items() if value is not None}
    arguments = [word for key, value in sets.items() for word in ("--set", f"{key}={value}")]
    file = str(PAPER / f"scenario-{scenario}.toml")
    runs = [json_of(binary, "run", "--json", file, *arguments, "--set", f"transfer.seed={seed}")["out_of_order"] for seed in SEEDS]
    return tuple(sum(run[what] for run in runs) / len(runs) for what in ("ratio", "max_bytes"))


def ranks(values):
    return [sum(v < x for v in values) + (sum(v == x for v in values) + 1) / 2 for x in values]


def spearman(a, b):
    a, b = ranks(a), ranks(b)
    middle = (len(a) + 1) / 2
    product = lambda x, y: sum((x - middle) * (y - middle) for x, y in zip(x, y))
    scale = (product(a, a) * product(b, b)) ** 0.5
    return product(a, b) / scale if scale else float("nan")


def sweep(binary):
    """Writes a row for each choice: rank correlations with the study, claims that hold, and cells within a quarter of it."""
    theirs = printed()
    columns = [f"{what}_{x}" for what in ("stored", "buffer") for x in (1, 2, 3, 4, "mean")]
    columns = ["reading", *columns, "tcp_door_stores_most_of_12", "nopr_smallest_buffer_of_12",
               "ratios_within_a_quarter_of_60", "buffers_within_a_quarter_of_60"]  # fmt: skip
    lines = [f"# {COMMAND}", ",".join(columns)]
    for name, choice in CHOICES.items():
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            ours = dict(zip(theirs, pool.map(lambda key: cell(binary, key, choice), theirs)))
        row = [name]
        for what in (0, 1):
            keys = [[key for key in theirs if key[0] == scenario] for scenario in (1, 2, 3, 4)]
            each = [spearman([theirs[k][what] for k in k4], [ours[k][what] for k in k4]) for k4 in keys]
            row += [f"{x:.2f}" for x in (*each, sum(each) / 4)]
        ranked = lambda s, c, what, pick: pick(RECOVERIES, key=lambda r: ours[s, r, c][what])
        rows = [(s, c) for s in (1, 2, 3, 4) for c in COUPLINGS]
        row.append(str(sum(ranked(s, c, 0, max) == "TCP-DOOR" for s, c in rows)))
        row.append(str(sum(ranked(s, c, 1, min) == "NoPR" for s, c in rows)))
        row += [str(sum(abs(ours[k][w] / theirs[k][w] - 1) <= 0.25 for k in theirs)) for w in (0, 1)]
        lines.append(",".join(row))
        print(lines[-1], flush=True)
    DATA.write_text("\n".join(lines) + "\n", encoding="utf-8")


def draw(binary):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = json_of(binary, "reproduce", "alheid2016", "--json")
    figure, panels = plt.subplots(2, 4, figsize=(12, 5.6), layout="constrained", sharex=True)
    titles = ["54 + 54 Mbit/s", "2 + 2 Mbit/s", "54 + 2 Mbit/s", "6 + 2 Mbit/s"]
    kinds = [("paper", "paper_value", "#bbbbbb"), ("chihani2011", "model_value", "#e07b39"), ("rfc8684", "simulated_value", "#2e86ab")]
    for column, title in enumerate(titles):
        for line, (quantity, factor) in enumerate([("goodput_bps", 1e-6), ("out_of_order.ratio", 100)]):
            axes = panels[line][column]
            mine = [r for r in rows if r["item"] == f"scenario-{column + 1}" and r["quantity"] == quantity]
            for offset, (name, key, colour) in enumerate(kinds):
                for place, recovery in enumerate(RECOVERIES):
                    values = [r[key] for r in mine if r["case"].startswith(f"{recovery},")]
                    values = [v * factor for v in values if v is not None]
                    if not values:
                        continue
                    mean = sum(values) / len(values)
                    error = [[max(0, mean - min(values))], [max(0, max(values) - mean)]]  # not below 0 by rounding
                    label = name if place == 0 and line == 1 and column == 0 else None
                    axes.bar(place + (offset - 1) * 0.27, mean, 0.27, color=colour, yerr=error, ecolor="#555555", label=label)
            axes.grid(axis="y", alpha=0.3)
            axes.set_axisbelow(True)
        panels[0][column].set_title(f"Scenario {column + 1}: {title}", fontsize=10)
        panels[1][column].set_xticks(range(5), RECOVERIES, rotation=40, ha="right")
    panels[0][0].set_ylabel("goodput, Mbit/s")
    panels[1][0].set_ylabel("stored out of order, %")
    figure.legend(loc="outside lower center", ncols=3)
    figure.savefig(HERE / "reordering-over-wifi.png", dpi=100, metadata={"Software": None})


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--binary", required=True)
    arguments.add_argument("--sweep", action="store_true", help="write the table of choices instead of the figure")
    arguments = arguments.parse_args()
    (sweep if arguments.sweep else draw)(arguments.binary)


if __name__ == "__main__":
    main()
