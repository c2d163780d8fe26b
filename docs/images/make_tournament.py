#!/usr/bin/env python3
"""Plays the tournament of all schedulers; refreshes the tables and the figure of docs/concepts/tournament.md, and the
data files docs/data/tournament-*.csv.

    python3 docs/images/make_tournament.py --binary target/release/ropewalk

Needs matplotlib and some minutes. `--from played.json` takes what `ropewalk tournament --json` printed instead.
"""

import argparse
import json
import re
import subprocess
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "concepts" / "tournament.md"
DATA = ROOT / "docs" / "data"
COMMAND = "python3 docs/images/make_tournament.py --binary target/release/ropewalk"
OWN = "lay"
SEEDS = 8
# Schedulers in the table of the page; the data file has all.
SHOWN = 12
NEAR = 0.95


def play(binary, seeds):
    """The document of the whole tournament."""
    command = [binary.resolve(), "tournament", "--seeds", str(seeds), "--json"]
    # Status 1 says that a run failed: the document has it, and so will the page.
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def table(heads, rows):
    """Markdown; the first column to the left."""
    lines = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def percent(share):
    return f"{100 * share:.1f} %"


def quantity(value, units):
    """In the largest unit that leaves at least 1, with three digits that count."""
    if value is None:
        return "-"
    worth, unit = next(((w, u) for w, u in units if value >= w), units[-1])
    return f"{digits(value / worth)} {unit}"


def digits(value):
    """A number with three digits that count; more only before the decimal point."""
    return f"{value:.{max(0, 3 - len(str(int(value))))}f}"


def write_csv(path, columns, rows):
    """A data file; its first line names the command that writes it."""
    lines = [f"# {COMMAND}", ",".join(columns), *(",".join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def figures(entry):
    """The fields of one scheduler in a match; a figure that is not known is empty."""
    mean = {key: value["mean"] if isinstance(value, dict) else None for key, value in entry.items()}
    shown = lambda value, worth: "" if value is None else digits(value / worth)  # noqa: E731
    share = lambda value: "" if value is None else f"{100 * value:.1f}"  # noqa: E731
    spurious = "" if mean["spurious_retransmissions"] is None else f"{mean['spurious_retransmissions']:.0f}"
    return [
        "" if entry["failures"] else shown(mean["goodput_bps"], 1e6), share(mean["share_of_bound"]), share(mean["gain"]),
        shown(mean["app_delay_p50_s"], 1e-3), shown(mean["app_delay_p99_s"], 1e-3), shown(mean["receive_buffer_max_bytes"], 1e3),
        spurious, share(entry["goodput_ratio"] * entry["delay_ratio"]), str(len(entry["failures"])),
    ]  # fmt: skip


def write_matches(played):
    """A row for each scheduler in each match, the best score of a match first."""
    columns = ["scenario", "protocol", "scheduler", "goodput_mbps", "of_bound_pct", "of_best_path_pct", "delay_p50_ms", "delay_p99_ms",
               "peak_buffer_kb", "spurious", "score_pct", "failed"]  # fmt: skip
    rows = []
    for match in played["matches"]:
        entries = sorted(match["entries"], key=lambda e: -e["goodput_ratio"] * e["delay_ratio"])
        rows += [[match["scenario"], match["protocol"], entry["scheduler"], *figures(entry)] for entry in entries]
    write_csv(DATA / "tournament-matches.csv", columns, rows)


def write_rankings(rankings):
    """A row for each scheduler over all matches, then under each protocol."""
    columns = ["protocol", "scheduler", "score_pct", "goodput_pct", "delay_pct", "near_goodput", "near_delay", "near_both", "wins",
               "worst_goodput_pct", "worst_goodput_match", "worst_delay_pct", "worst_delay_match"]  # fmt: skip
    share = lambda value: f"{100 * value:.1f}"  # noqa: E731
    worst = lambda w: [share(w["ratio"]), f"{w['scenario']} {w['protocol']}"]  # noqa: E731
    rows = [
        [ranking["protocol"] or "all", r["scheduler"], share(r["score"]), share(r["goodput"]), share(r["delay"]), str(r["near_goodput"]),
         str(r["near_delay"]), str(r["near_both"]), str(r["wins"]), *worst(r["worst_goodput"]), *worst(r["worst_delay"])]
        for ranking in rankings for r in ranking["ranks"]
    ]  # fmt: skip
    write_csv(DATA / "tournament-rankings.csv", columns, rows)


def ranking_table(rankings):
    """The first schedulers over all matches, with their scores under each protocol."""
    first, *others = rankings
    heads = ["scheduler", "score", "goodput", "delay", "near both", "wins", *(f"score, {ranking['protocol']}" for ranking in others)]
    score = lambda ranking, name: next(percent(r["score"]) for r in ranking["ranks"] if r["scheduler"] == name)  # noqa: E731
    rows = [
        [f"`{r['scheduler']}`", percent(r["score"]), percent(r["goodput"]), percent(r["delay"]), str(r["near_both"]), str(r["wins"]),
         *(score(ranking, r["scheduler"]) for ranking in others)]
        for r in first["ranks"][:SHOWN]
    ]  # fmt: skip
    return table(heads, rows)


def median(entry):
    return quantity(entry["app_delay_p50_s"]["mean"], [(1, "s"), (1e-3, "ms")])


def own(match):
    return next(entry for entry in match["entries"] if entry["scheduler"] == OWN)


def behind(played):
    """Where the default scheduler is more than 5 % behind the best, in goodput or in delay."""
    rows = []
    for match in played["matches"]:
        mine = own(match)
        for word, key, other in (("goodput", "goodput_ratio", "delay_ratio"), ("delay p99", "delay_ratio", "goodput_ratio")):
            if mine[key] >= NEAR:
                continue
            # Of several with the best figure, the one that pays least for it.
            first = max(match["entries"], key=lambda entry: (entry[key], entry[other]))
            rival = [e for e in match["entries"] if e[other] >= NEAR * mine[other]]
            fair = max(rival, key=lambda entry: entry[key])
            ahead = "none" if fair is mine else f"`{fair['scheduler']}` {percent(fair[key])}"
            rows.append([f"{match['scenario']}, {match['protocol']}", word, percent(mine[key]), median(mine),
                         f"`{first['scheduler']}`", percent(first[other]), median(first), ahead])  # fmt: skip
    heads = ["match", "in", f"`{OWN}`", "its p50", "best", "the best's other ratio", "its p50", f"best of those as good as `{OWN}` in the other"]
    return table(heads, rows) if rows else f"`{OWN}` is within 5 % of the best goodput and of the best delay in every match.\n"


def summary(played):
    """What the run says of the default scheduler, in a sentence each."""
    ranking = played["rankings"][0]
    place = [rank["scheduler"] for rank in ranking["ranks"]].index(OWN)
    mine, total = ranking["ranks"][place], ranking["matches"]
    seeds = f"{played['seeds']} seed" + ("s" if played["seeds"] != 1 else "")
    lines = [f"{total} matches, {len(ranking['ranks'])} schedulers, {seeds} each. By score `{OWN}` is number {place + 1}: "
             f"{percent(mine['goodput'])} of the best goodput and {percent(mine['delay'])} of the best delay."]  # fmt: skip
    for word, key in (("goodput", "goodput"), ("delay", "delay")):
        first = max(ranking["ranks"], key=lambda rank: rank[key])
        if first is not mine:
            lines.append(f"In {word} alone `{first['scheduler']}` is first with {percent(first[key])} (its score: {percent(first['score'])}).")
    lines.append(f"In {mine['near_both']} of {total} matches no scheduler within 5 % of the best goodput has a p99 delay that is shorter by more than 5 %.")
    first = [m for m in played["matches"] if best_score(m) is own(m)]
    lost = [f"{m['scenario']} under {m['protocol']} (`{best_score(m)['scheduler']}`)" for m in played["matches"] if best_score(m) is not own(m)]
    lines.append(f"It has the best score in {len(first)} of {total} matches." + (f" The exceptions are: {'; '.join(lost)}." if lost else ""))
    return "\n".join(lines) + "\n"


def best_score(match):
    return max(match["entries"], key=lambda entry: entry["goodput_ratio"] * entry["delay_ratio"])


def fill(text, name, content):
    """The page with another text between the two comments of that name."""
    mark = re.compile(rf"(<!-- tournament: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    assert mark.search(text), f"{PAGE.name} has no place for {name}"
    return mark.sub(lambda match: f"{match[1]}\n{content}\n{match[2]}", text)


def label(figure, axes, points):
    """Names beside their points, each on the first side where it hides no other."""
    axes.margins(0.12)
    figure.draw_without_rendering()
    taken = [matplotlib.transforms.Bbox.from_bounds(x - 4, y - 4, 8, 8) for x, y in map(axes.transData.transform, points)]
    for place, names in points.items():
        for side, shift in (("left", (6, 3)), ("left", (6, -11)), ("right", (-6, 3)), ("right", (-6, -11)), ("left", (6, 14))):
            text = axes.annotate(", ".join(names), place, xytext=shift, textcoords="offset points", fontsize=8, ha=side)
            box = text.get_window_extent()
            if not any(box.overlaps(other) for other in taken):
                break
            text.remove()
        else:
            axes.add_artist(text)
        taken.append(box)


def draw(played):
    """A map: each scheduler's score in each match, and its means."""
    ranking = played["rankings"][0]["ranks"]
    names, matches = [rank["scheduler"] for rank in ranking], played["matches"]
    grid = [[next(e["goodput_ratio"] * e["delay_ratio"] for e in m["entries"] if e["scheduler"] == name) for m in matches] for name in names]
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 6.2), width_ratios=(5, 4), layout="constrained")
    left.imshow(grid, cmap="Blues", vmin=0.2, vmax=1.25, aspect="auto")
    for i, row in enumerate(grid):
        for j, share in enumerate(row):
            left.text(j, i, f"{100 * share:.0f}", ha="center", va="center", fontsize=8, color="white" if share > 0.85 else "black")
    left.set_yticks(range(len(names)), names)
    left.set_xticks(range(len(matches)), [f"{m['scenario']}\n{m['protocol']}" for m in matches], rotation=90, fontsize=8)
    left.set_title("Score in each match: goodput and p99 delay beside the best (%)", fontsize=10)
    points = {}
    for rank in ranking:
        # Schedulers that decide alike share a point, and its label.
        points.setdefault((round(100 * rank["delay"], 1), round(100 * rank["goodput"], 1)), []).append(rank["scheduler"])
    for place, names in points.items():
        right.scatter(*place, color="#e07b39" if OWN in names else "#1f77b4", zorder=3)
    label(figure, right, points)
    right.set(xlabel="best p99 delay over own (%)", ylabel="goodput over best (%)")
    right.set_title("Geometric means over all matches", fontsize=10)
    right.grid(alpha=0.3)
    figure.savefig(HERE / "tournament.png", dpi=100, metadata={"Software": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--binary", type=Path, help="the built `ropewalk`, release")
    source.add_argument("--from", dest="played", type=Path, help="a document of `tournament --json`")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"runs of each, with --binary ({SEEDS})")
    args = parser.parse_args()
    played = json.loads(args.played.read_text(encoding="utf-8")) if args.played else play(args.binary, args.seeds)
    draw(played)
    text = PAGE.read_text(encoding="utf-8")
    write_matches(played)
    write_rankings(played["rankings"])
    parts = {"summary": summary(played), "ranking": ranking_table(played["rankings"]), "behind": behind(played)}
    for name, content in parts.items():
        text = fill(text, name, content)
    PAGE.write_text(text, encoding="utf-8")
    print(parts["summary"] + "\n" + parts["ranking"] + "\n" + parts["behind"])


if __name__ == "__main__":
    main()
