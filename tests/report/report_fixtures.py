"""Fixtures: reports made from simple formulas. They look like results but come from no simulation."""

from __future__ import annotations

import math
import random

TOML = """# Fixture. Two unequal paths and one small buffer. Text that tries to break out: </script><!-- /*REPORT_JS*/
[transfer]
protocol       = "cmt-sctp"
duration       = "100 s"
warmup         = "20 s"
scheduler      = "{scheduler}"
receive_buffer = "45 kB"

[[path]]
name = "wifi"
rate = "1 Mbit/s"
rtt  = "20 ms"

[[path]]
name = "lte"
rate = "2 Mbit/s"
rtt  = "200 ms"
loss = {{ model = "bernoulli", rate = 1e-3 }}
"""

PATHS = [("wifi", 1e6, 0.020), ("lte", 2e6, 0.200)]


def saw(t: float, period: float) -> float:
    """A sawtooth between 0.5 and 1, as congestion windows make it."""
    return 0.5 + 0.5 * ((t / period) % 1.0)


def series(quality: float, rng: random.Random) -> dict:
    """Time series of 100 s in steps of 0.5 s; ``quality`` is the share of the capacity that is reached."""
    time = [round(0.5 * i, 1) for i in range(1, 201)]
    paths = []
    for index, (name, rate, rtt) in enumerate(PATHS):
        shape = [quality * saw(t, 11 + 7 * index) * min(1.0, t / 3) for t in time]
        paths.append({
            "name": name,
            "throughput_bps": [rate * s * rng.uniform(0.96, 1.04) for s in shape],
            "cwnd_bytes": [rate / 8 * (rtt + 0.06) * s * 1.3 for s in shape],
            "in_flight_bytes": [rate / 8 * (rtt + 0.06) * s * 1.1 for s in shape],
            "srtt_s": [rtt + 0.05 * s for s in shape],
            "lost_packets": [1 if i % (37 + 12 * index) == 5 else 0 for i in range(len(time))],
        })
    total = [sum(p["throughput_bps"][i] for p in paths) for i in range(len(time))]
    occupancy = [45e3 * min(1.0, (1.25 - quality) * abs(math.sin(t / 4)) * rng.uniform(0.8, 1.1)) for t in time]
    delivered, sum_bytes = [], 0.0
    for rate in total:
        sum_bytes += rate * 0.5 / 8
        delivered.append(round(sum_bytes))
    paths[1]["srtt_s"][0] = None  # a value that is not known yet
    paths[0]["srtt_s"][120:140] = [None] * 20  # the path has failed
    return {
        "time_s": time, "goodput_bps": [0.97 * rate for rate in total], "delivered_bytes": delivered,
        "receive_buffer_bytes": occupancy, "receive_buffer_peak_bytes": [min(45e3, 1.3 * b + 2e3) for b in occupancy], "receive_window_bytes": [45e3 - b for b in occupancy], "paths": paths,
    }


def sequence(delay_aware: bool) -> dict:
    """Arrivals of the first 300 packets: two of three go by the slow, wide path."""
    arrivals: dict[str, list[tuple[float, int]]] = {name: [] for name, _, _ in PATHS}
    sent = {name: 0 for name, _, _ in PATHS}
    for seq in range(300):
        name, rate, rtt = PATHS[0] if seq % 3 == 0 else PATHS[1]
        lead = 15 if delay_aware and name == "wifi" else 0
        sent[name] += 1
        arrivals[name].append((rtt / 2 + sent[name] * 12e3 / rate + lead * 0.006, seq))
    at = {seq: t for points in arrivals.values() for t, seq in points}
    release, latest = [], 0.0
    for seq in range(300):
        latest = max(latest, at[seq])
        release.append(latest)
    return {
        "paths": [{"name": n, "time_s": [t for t, _ in p], "seq": [s for _, s in p]} for n, p in arrivals.items()],
        "delivered": {"time_s": release, "seq": list(range(300))},
    }


def distributions(quality: float) -> dict:
    """Distribution functions of the two delays."""
    shares = [i / 200 for i in range(200)] + [0.998, 1.0]
    delay = [0.08 + 0.1 * (1.1 - quality) * (-math.log(1.0001 - share)) for share in shares]
    wait = [max(0.0, d - 0.1) for d in delay]
    return {"app_delay_s": {"values": delay, "shares": shares}, "blocking_time_s": {"values": wait, "shares": shares}}


def result(scheduler: str, quality: float) -> dict:
    """One ``ropewalk.run/1`` document."""
    goodput = 2.21e6 * quality
    wait = 0.4 * (1.1 - quality)
    return {
        "schema": "ropewalk.run/1", "protocol": "cmt-sctp", "scheduler": scheduler, "duration_s": 100.0, "warmup_s": 20.0,
        "goodput_bps": goodput, "flow_control_bound_bps": 2.34e6, "share_of_bound": goodput / 2.34e6,
        "paths": [
            {
                "name": name, "sent_packets": round(8000 * rate / 1e6 * quality), "retransmitted_packets": round(12 * rtt * 50),
                "lost_packets": round(9 * rtt * 50), "delivered_bytes": round(rate * quality * 10), "throughput_bps": rate * 0.78 * quality,
                "utilisation": 0.78 * quality, "srtt_s": rtt + 0.04, "cwnd_bytes": rate / 8 * (rtt + 0.06),
            }
            for name, rate, rtt in PATHS
        ],
        "receive_buffer": {"max_bytes": 45000 * (1.2 - quality), "mean_bytes": 14000 * (1.2 - quality), "p99_bytes": 42000 * (1.2 - quality), "blocked_s": 40 * (1 - quality)},
        "blocking_time_s": {"max": 2 * wait, "mean": wait / 2, "p50": wait / 3, "p99": 1.7 * wait},
        "app_delay_s": {"mean": 0.1 + wait, "p50": 0.09 + wait, "p99": 0.12 + 2.2 * wait, "max": 0.3 + 3 * wait},
        "out_of_order": {"ratio": 0.6 * (1.1 - quality), "max_bytes": 44000 * (1.2 - quality)},
        "spurious_retransmissions": round(50 * (1 - quality)),
        "engine": {"events": 184_223, "packets": 24_311, "cpu_s": 0.0312, "packets_per_cpu_s": 779_199.0},
    }


def run(scheduler: str, quality: float, label: str | None = None) -> dict:
    """One entry of ``runs``."""
    rng = random.Random(scheduler)
    return {
        "label": label or scheduler, "scenario_toml": TOML.format(scheduler=scheduler), "seed": 7, "result": result(scheduler, quality),
        "series": series(quality, rng), "sequence": sequence(scheduler in ("daps", "ods")), "distributions": distributions(quality),
        "outages": [{"path": "wifi", "from_s": 58.0, "to_s": 70.0}],
        "notes": ["lte shows an RTT of 128.7 ms, less than the 200 ms of its links: some SACKs return on a faster path than the packets that they acknowledge."],
    }


def head(kind: str, title: str, command: str) -> dict:
    """The keys that every report has."""
    return {"schema": "ropewalk.report/1", "title": title, "kind": kind, "version": "0.1.0", "generated_from": command, "runs": [], "summary": [], "repeats": [], "figures": [], "rows": []}


FLOWS = [
    {"name": "download", "kind": "tcp", "goodput_bps": 2.1e6, "delay_p50_s": 0.07, "delay_p99_s": 0.14, "delay_max_s": 0.18,
     "lost": 2e-4, "out_of_order": 0.0, "longest_gap_s": 0.037, "mos": None},
    {"name": "call", "kind": "call", "goodput_bps": 1.6e5, "delay_p50_s": 0.011, "delay_p99_s": 0.017, "delay_max_s": 0.04,
     "lost": 0.0, "out_of_order": 0.0, "longest_gap_s": 0.051, "mos": 4.38},
]


def run_report() -> dict:
    """One run with flows through a tunnel; its title tries to break out of the page."""
    report = head("run", "DAPS over Wi-Fi and LTE </script><script>window.escaped = true</script>", "ropewalk run wifi-lte.toml --scheduler daps --report out.html")
    report["runs"] = [run("daps", 0.93)]
    report["runs"][0]["result"]["flows"] = FLOWS
    return report


def compare_report() -> dict:
    """Nine runs, more than there are colours and more than are shown at first; one without a series."""
    report = head("compare", "Nine schedulers, two unequal paths", "ropewalk compare wifi-lte.toml --schedulers all --report out.html")
    names = ["daps", "ods", "stms", "blest", "ecf", "min-rtt", "otias", "redundant", "round-robin"]
    report["runs"] = [run(name, 0.95 - 0.075 * i) for i, name in enumerate(names)]
    report["runs"][-1]["series"] = {"time_s": [], "goodput_bps": [], "delivered_bytes": [], "receive_buffer_bytes": [], "receive_window_bytes": [], "paths": []}
    report["runs"][-1]["result"]["app_delay_s"] = None
    sure, open_ = ({"mean": mean, "low": mean - 0.05, "high": mean + 0.05, "larger": 3, "smaller": 0} for mean in (-0.2, 0.01))
    report["paired"] = [
        {"label": name, "reference": "daps", "pairs": 3, "goodput": sure, "app_delay_mean": open_, "app_delay_p99": {**sure, "low": None, "high": None}, "receive_buffer_max": None}
        for name in names[1:]]
    return report


def estimates(label: str, values: dict) -> dict:
    """One entry of ``summary``."""
    return {"label": label, "runs": 4, **{name: {"mean": mean, "half_width": 0.04 * mean} for name, mean in values.items()}}


def seeds_report() -> dict:
    """Three schedulers with four seeds each; series of the first seed."""
    report = head("compare", "Three schedulers, four seeds", "ropewalk compare lossy-wifi.toml --seeds 4 --report out.html")
    rng = random.Random(1)
    for name, quality in (("daps", 0.9), ("blest with a rather long name", 0.8), ("round-robin", 0.6)):
        report["runs"].append(run(name, quality))
        values = {"goodput_bps": 2.2e6 * quality, "share_of_bound": quality, "receive_buffer_max_bytes": 45e3 * (1.2 - quality),
                  "app_delay_mean_s": 0.1 / quality, "app_delay_p99_s": 0.3 / quality, "spurious_retransmissions": 12.5}
        report["summary"].append({**estimates(name, values), "gain": {"mean": 1.3 * quality, "half_width": 0.02}})
        report["repeats"] += [{"label": name, "seed": str(seed), "gain": 1.3 * quality, **{key: v * rng.uniform(0.95, 1.05) for key, v in values.items()}} for seed in range(1, 5)]
    return report


def repeated_report() -> dict:
    """One scenario with four seeds."""
    report = {**seeds_report(), "kind": "run", "title": "One scenario, four seeds"}
    for key in ("runs", "summary"):
        report[key] = report[key][:1]
    report["repeats"] = report["repeats"][:4]
    return report


def sweep_report() -> dict:
    """A grid of two numbers and a name, with intervals; one point failed."""
    report = head("sweep", "wifi-lte", "ropewalk sweep wifi-lte --vary ... --seeds 5 --report out.html")
    keys = [("path.lte.rtt_s", "path.lte.rtt", "time"), ("transfer.receive_buffer_bytes", "transfer.receive_buffer", "bytes"), ("transfer.scheduler", "transfer.scheduler", "number")]
    points = []
    for rtt in (0.02, 0.04, 0.08, 0.16, 0.32):
        for buffer in (16e3, 64e3, 256e3, 1024e3):
            for scheduler, quality in (("lay", 1.0), ("min-rtt", 0.7)):
                goodput = 3e6 * quality * buffer / (buffer + 3e5 * rtt)
                failed = (rtt, buffer, scheduler) == (0.32, 16e3, "min-rtt")
                points.append({"point": len(points), keys[0][0]: rtt, keys[1][0]: buffer, keys[2][0]: scheduler, "runs": 0 if failed else 5,
                               "goodput_bps": None if failed else goodput, "goodput_bps_half_width": None if failed else 0.05 * goodput,
                               "app_delay_p99_s": rtt + 0.3 * (1.1 - quality), "app_delay_p99_s_half_width": 0.01})
    report["sweep"] = {"keys": [dict(zip(("column", "label", "kind"), key)) for key in keys], "points": points}
    return report


def figures() -> list[dict]:
    """One figure of every style and scale."""
    buffers = [20, 30, 45, 60, 90, 120, 200]
    rise = [3 * (1 - math.exp(-b / 50)) for b in buffers]
    loss = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2]
    pftk = [1.2 / math.sqrt(p) / 10 for p in loss]
    wait = sorted(0.2 * math.sqrt(i / 200) for i in range(200)) + [0.2, 0.2]
    cases = ["5 ms", "50 ms", "200 ms"]
    return [
        {"id": "fig5", "paper": "Fixture 2014", "title": "Goodput over receive buffer", "x_label": "Receive buffer, kB", "y_label": "Goodput, Mbit/s", "x_scale": "linear", "y_scale": "linear",
         "note": "Points read off the printed figure to within 2 %.",
         "series": [
             {"name": "DAPS", "source": "paper", "style": "points", "x": buffers, "y": [v * 1.02 for v in rise]},
             {"name": "DAPS", "source": "simulated", "style": "line", "x": buffers, "y": rise},
             {"name": "round robin", "source": "paper", "style": "points", "x": buffers, "y": [v * 0.62 for v in rise]},
             {"name": "round robin", "source": "simulated", "style": "line", "x": buffers[:5] + [None, 200], "y": [v * 0.6 for v in rise[:5]] + [None, rise[6] * 0.6]},
         ]},
        {"id": "fig6", "paper": "Fixture 2014", "title": "Throughput over loss", "x_label": "Loss rate", "y_label": "Throughput, Mbit/s", "x_scale": "log", "y_scale": "log", "note": None,
         "series": [
             {"name": "TCP", "source": "paper", "style": "points", "x": loss, "y": [v * 0.94 for v in pftk]},
             {"name": "TCP", "source": "model", "style": "line", "x": [0, *loss], "y": [99, *pftk]},
             {"name": "TCP", "source": "simulated", "style": "line", "x": loss, "y": [v * 0.9 for v in pftk]},
             {"name": "TCP", "source": "peer", "style": "line", "x": loss, "y": [v * 0.83 for v in pftk]},
         ]},
        {"id": "fig7", "paper": "Fixture 2014", "title": "Blocking time", "x_label": "Blocking time, s", "y_label": "Share of packets", "note": "A step at the end: many packets wait equally long.",
         "series": [{"name": "all packets", "source": "simulated", "style": "line", "x": wait, "y": [i / 201 for i in range(202)]}]},
        {"id": "tab3", "paper": "Fixture 2018, with a rather long name that has to wrap on a phone", "title": "Delay by case", "x_label": "Case", "y_label": "Delay, ms", "note": "Bars side by side.",
         "series": [
             {"name": "paper", "source": "paper", "style": "bars", "x": cases, "y": [12, 48, 210]},
             {"name": "model", "source": "model", "style": "bars", "x": cases, "y": [11, 51, 203]},
             {"name": "simulated", "source": "simulated", "style": "bars", "x": cases, "y": [13, 49, None]},
         ]},
        {"id": "fig9", "paper": "Fixture 2018, with a rather long name that has to wrap on a phone", "title": "Never measured", "x_label": "x", "y_label": "y", "note": None,
         "series": [{"name": "nothing", "source": "simulated", "style": "line", "x": [], "y": []}]},
    ]


def row(paper: str, item: str, case: str, quantity: str, unit: str, values: tuple, verdict: str, reason: str | None) -> dict:
    """One entry of ``rows``; ``values`` are paper, model, simulated, peer."""
    printed, model, simulated, peer = values
    known = [v for v in (printed, simulated) if isinstance(v, (int, float)) and not isinstance(v, bool)]
    difference = (simulated - printed) / printed if len(known) == 2 and printed else None
    return {"paper": paper, "item": item, "case": case, "quantity": quantity, "unit": unit, "paper_value": printed, "model_value": model,
            "simulated_value": simulated, "peer_value": peer, "difference": difference, "verdict": verdict, "reason": reason}


def reproduce_report() -> dict:
    """Two papers with figures and rows of every verdict."""
    report = head("reproduce", "Papers reproduced", "ropewalk reproduce all --report out.html")
    report["figures"] = figures()
    first, second = report["figures"][0]["paper"], report["figures"][3]["paper"]
    judged = row(second, "Table 3", "case 1", "goodput", "bit/s", ("> 2 Mbit/s", None, 2.01e6, None), "undecided", None)
    judged |= {"interval": [-0.01, 0.02], "seeds": 10, "readings": ["sctp.sack_every=2"]}
    report["rows"] = [
        row(first, "Table 2", "45 kB, round robin", "goodput", "bit/s", (1.21e6, 1.19e6, 1.2312e6, None), "agrees", None),
        row(first, "Table 2", "45 kB, DAPS", "goodput", "bit/s", (2.31e6, 2.34e6, 2.1e6, 2.2e6), "differs", "The paper's sender starts with a window of four packets; this one follows RFC 9260 and starts with three."),
        row(first, "Table 2", "45 kB, DAPS", "largest blocking time", "s", (0.038, 0.0375, 0.0381, None), "agrees", None),
        row(first, "Figure 5", "all buffers", "DAPS is never slower", "", (True, None, True, None), "claim holds", "Checked at seven buffer sizes, ten seeds each."),
        row(first, "Figure 6", "loss 1 %", "claimed order of schedulers", "", ("A > B", None, "B > A", None), "claim fails", "The order turns round above 0.5 % loss, in every seed."),
        row(second, "Table 3", "200 ms", "buffer needed", "B", (45000, 45312, 44870, None), "agrees", None),
        judged,
        row(second, "Table 3", "5 ms", "packets stored", "packets", (0, 0, 0, None), "not checked", None),
    ]
    return report


def tune_report() -> dict:
    """Limits for two paths, checked; one manager failed."""
    report = head("tune", "Two lines, one buffer", "ropewalk tune house.toml --check --report out.html")
    names, limits, useful = ["fibre", "radio with a rather long name"], [70, 16], [72, 40]
    curve = [[21 * (1 - math.exp(-c / 30)) for c in range(1, 73)], [9 * (1 - math.exp(-c / 12)) for c in range(1, 41)]]
    figure = {"paper": "Limits", "x_label": "Limit of the window (packets)", "y_label": "On the wire (Mbit/s)", "note": None}
    report["figures"] = [
        {**figure, "id": "window", "title": "Throughput against window", "series": [
            part for name, limit, ys in zip(names, limits, curve) for part in (
                {"name": name, "source": "model", "style": "line", "x": list(range(1, len(ys) + 1)), "y": ys},
                {"name": name, "source": "limit", "style": "points", "x": [limit], "y": [ys[limit - 1]]})]},
        {**figure, "id": "allocation", "title": "The allocation", "series": [{"name": "best limits", "source": "limit", "style": "bars", "x": names, "y": limits}]},
    ]
    x, y = list(range(1, 73, 2)), list(range(1, 41, 2))
    report["surfaces"] = [{
        "id": "surface", "title": "Over the limits of both", "note": "Below the line the limits fit.", "x_label": "Limit of fibre (packets)",
        "y_label": "Limit of radio (packets)", "value_label": "On the wire (Mbit/s)", "x": x, "y": y,
        "value": [[curve[0][a - 1] + curve[1][b - 1] for a in x] for b in y], "most": 86, "mark": {"x": 70, "y": 16}}]
    estimate = {"mean": 20.2e6, "half_width": 0.6e6}
    report["tuning"] = {
        "schema": "ropewalk.tune/1", "receive_buffer_bytes": 126000, "buffer_packets": 86, "packet_bytes": 1500.0, "payload_share": 0.968,
        "limits_packets": limits, "predicted_bps": 25.6e6, "equal_split": {"limits_packets": [43, 43], "predicted_bps": 24.2e6},
        "paying": {"limits_packets": limits, "predicted_bps": 25.6e6}, "unlimited_bps": 30e6, "rates_bps": 42e6, "reach": None,
        "notes": ["the receive buffer is small enough to block"],
        "paths": [{"name": n, "rate_bps": 21e6, "round_trip_s": 0.0406, "loss": 1e-3, "p": 1e-3, "loss_kind": "independent", "useful_packets": u,
                   "limit_packets": c, "predicted_bps": ys[c - 1] * 1e6, "pays": u > 50} for n, c, u, ys in zip(names, limits, useful, curve)],
        "simulated_bps": estimate,
        "check": {"seeds": 5, "predicted_goodput_bps": 24.8e6, "simulated_bps": estimate, "managers": [
            {"window_manager": "none", "goodput_bps": {"mean": 19.7e6, "half_width": None}, "gain": {"mean": 1.0, "half_width": 0.0}, "error": None},
            {"window_manager": "dynamic", "goodput_bps": None, "gain": None, "error": "the transfer stopped at 3 s"},
            {"window_manager": "static", "goodput_bps": estimate, "gain": {"mean": 1.023, "half_width": 0.013}, "error": None}]},
    }
    return report


def entry(scheduler: str, goodput: float, delay: float, air: bool) -> dict:
    """One scheduler in a match; both numbers are shares of the best, 0 for a run that failed."""
    known = {"mean": 1.0, "half_width": None} if goodput else None
    scaled = lambda factor: {**known, "mean": factor} if known else None  # noqa: E731
    return {
        "scheduler": scheduler, "goodput_bps": scaled(9e6 * goodput), "share_of_bound": None if air else scaled(0.97 * goodput), "gain": scaled(1.9 * goodput),
        "app_delay_p50_s": scaled(0.02 / (delay or 1)), "app_delay_p99_s": scaled(0.05 / (delay or 1)), "receive_buffer_max_bytes": scaled(3e4),
        "spurious_retransmissions": scaled(2.5), "goodput_ratio": goodput, "delay_ratio": delay, "runs": [],
        "failures": [] if goodput else [{"seed": "1", "error": "the transfer stopped"}],
    }


def rank(scheduler: str, entries: list[dict], matches: list[dict]) -> dict:
    """One line of a ranking, from the matches themselves."""
    goodput, delay = [e["goodput_ratio"] for e in entries], [e["delay_ratio"] for e in entries]
    geometric = lambda values: math.prod(values) ** (1 / len(values))  # noqa: E731
    worst = lambda values: {**{key: matches[values.index(min(values))][key] for key in ("scenario", "setting", "protocol")}, "ratio": min(values)}  # noqa: E731
    return {
        "scheduler": scheduler, "score": geometric(goodput) * geometric(delay), "goodput": geometric(goodput), "delay": geometric(delay),
        "near_goodput": sum(g >= 0.95 for g in goodput), "near_delay": sum(d >= 0.95 for d in delay), "near_both": 1, "wins": 0, "failed": goodput.count(0),
        "worst_goodput": worst(goodput), "worst_delay": worst(delay),
        "spread": {"score": [0.4, 0.8], "place": [1, 4], "first": 0.25}, "kept": len(matches), "gain": 1.3, "worst_gain": {**worst(goodput), "ratio": 0.97},
    }


def tournament_report() -> dict:
    """Fourteen schedulers, more than there are colours twice over, in 18 matches; one fails in one of them."""
    report = head("tournament", "Tournament of schedulers, 9 scenarios", "ropewalk tournament --report out.html")
    names = [f"scheduler-{i}" for i in range(14)]
    places = [f"scenario-{i} with a name" if i == 3 else f"scenario-{i}" for i in range(9)]
    matches = [
        {"scenario": place, "setting": protocol, "protocol": protocol, "preset": "rfc9260", "paths": 2, "entries": [
            entry(name, 0 if (i, j, protocol) == (13, 4, "mptcp") else 1 - 0.03 * ((i + j) % 14), 1 - 0.05 * ((3 * i + j) % 14), j == 8)
            for i, name in enumerate(names)]}
        for j, place in enumerate(places) for protocol in ("cmt-sctp", "mptcp")
    ]
    rankings = []
    for protocol in (None, "cmt-sctp", "mptcp"):
        of = [m for m in matches if protocol in (None, m["protocol"])]
        ranks = [rank(name, [m["entries"][i] for m in of], of) for i, name in enumerate(names)]
        rankings.append({"setting": protocol, "protocol": protocol, "paths": None, "matches": len(of), "ranks": sorted(ranks, key=lambda r: -r["score"])})
    report["tournament"] = {"schema": "ropewalk.tournament/1", "seeds": 1, "near": 0.05, "kept": 0.98, "matches": matches, "rankings": rankings}
    return report


def curve(name: str, source: str, values: list[float]) -> dict:
    """One line of a figure over time."""
    return {"name": name, "source": source, "style": "line", "x": [0.1 * i for i in range(len(values))], "y": values}


def validate_report(scenarios: int = 2) -> dict:
    """Two transports of the kernel over some scenarios: rows with verdicts, and both over time."""
    report = head("validate", "Simulator and Linux, kernel 6.18", "ropewalk validate --report out.html")
    for number in range(scenarios):
        scenario = f"10x20-10x200-{number}"
        for transport in ("tcp-cubic", "mptcp"):
            paths = ("path1", "path2")[: 1 + (transport == "mptcp")]
            shape = [9 * saw(0.1 * i, 4.0) for i in range(100)]
            both = (("peer", 1.0), ("simulated", 0.95))
            figure = {"paper": scenario, "note": None, "x_label": "time, s", "x_scale": "linear", "y_scale": "linear"}
            report["figures"] += [
                {**figure, "id": f"{scenario}-{transport}-goodput", "title": f"{transport}: goodput", "y_label": "Mbit/s",
                 "series": [curve("all paths", source, [factor * v for v in shape]) for source, factor in both]},
                {**figure, "id": f"{scenario}-{transport}-cwnd", "title": f"{transport}: congestion window", "y_label": "kB",
                 "series": [curve(path, source, [30 * (i + 1) * factor * v for v in shape]) for source, factor in both for i, path in enumerate(paths)]},
            ]
            for quantity, unit, values, verdict in (
                ("goodput", "bit/s", (None, None, 8.6e6, 8.9e6), "agrees"),
                ("median RTT", "s", (None, None, 0.041, 0.030), "differs"),
                ("retransmitted", "ratio", (None, None, 0.0011, 0.0102), "differs"),
            ):
                judged = row(scenario, transport, transport, quantity, unit, values, verdict, None)
                report["rows"].append({**judged, "difference": values[2] / values[3] - 1})
    return report


ALL = {"run": run_report, "repeated": repeated_report, "compare": compare_report, "seeds": seeds_report, "sweep": sweep_report, "reproduce": reproduce_report, "tune": tune_report, "tournament": tournament_report, "validate": validate_report}
