#!/usr/bin/env python3
"""How fast schedulers in Python decide, and how fast environments step; needs the package and gymnasium.

    .venv/bin/python benches/python_schedulers.py
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import ropewalk as rw
from ropewalk.gym import SchedulerEnv, VectorSchedulerEnv

SCENARIO = Path(__file__).parents[1] / "scenarios" / "wifi-lte.toml"
# Two paths that are never short of windows: nearly all of the time goes into decisions and packets.
FAST = {
    "path.wifi.rate": "50 Mbit/s",
    "path.lte.rate": "50 Mbit/s",
    "transfer.receive_buffer": "4 MB",
    "transfer.duration": "60 s",
}


class LeastLoaded:
    """The scheduler of the guide."""

    asked = 0

    def select(self, view: rw.SchedulerView) -> Any:
        LeastLoaded.asked += 1
        return min(view.open, key=lambda path: path.in_flight_bytes / path.window_bytes)


def decisions() -> None:
    """Decisions per second, the simulation around them included and without it."""
    rw.register_scheduler("bench-least-loaded", LeastLoaded)
    spent = {}
    for name in ("bench-least-loaded", "min-rtt"):
        begun = time.perf_counter()
        run = rw.run(SCENARIO, scheduler=name, set=FAST, series=False)
        spent[name] = (time.perf_counter() - begun) / run.engine.packets
    packets = LeastLoaded.asked / run.engine.packets
    alone = (spent["bench-least-loaded"] - spent["min-rtt"]) / packets
    print(f"decisions in Python   {packets / spent['bench-least-loaded']:12,.0f} per second of a run")
    print(f"  one decision        {alone * 1e6:12.2f} us more than in Rust")


def steps() -> None:
    """Steps per second with random actions."""
    actions = np.random.default_rng(0).integers(0, 2, (1000, 256))
    for count in (1, 16, 64, 256):
        env = VectorSchedulerEnv(SCENARIO, count)
        env.reset(seed=1)
        rounds = 300_000 // count if count > 1 else 50_000
        begun = time.perf_counter()
        for at in range(rounds):
            env.step(actions[at % 1000, :count])
        speed = rounds * count / (time.perf_counter() - begun)
        print(f"steps, {count:3} worlds     {speed:12,.0f} per second")
    single = SchedulerEnv(SCENARIO)
    single.reset(seed=1)
    begun = time.perf_counter()
    for at in range(50_000):
        _, _, terminated, truncated, _ = single.step(actions[at % 1000, 0])
        if terminated or truncated:
            single.reset()
    print(f"steps, SchedulerEnv   {50_000 / (time.perf_counter() - begun):12,.0f} per second")


if __name__ == "__main__":
    decisions()
    steps()
