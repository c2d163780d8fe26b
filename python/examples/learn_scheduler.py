#!/usr/bin/env python3
"""Learn a scheduler by the cross-entropy method; needs only NumPy and Gymnasium.

    python learn_scheduler.py ../../scenarios/wifi-lte.toml --out learnt.json
    python learn_scheduler.py ../../scenarios/wifi-lte.toml --weights learnt.json

The first command learns a policy. The second only compares a learnt policy with round robin and others,
in runs that were not used for learning.

The policy is linear: each open path gets a score, the sum of its features times their weights. The path
with the highest score takes the next chunk if that score is positive; otherwise the scheduler waits. All
paths share the weights, so weights that were learnt on two paths can be used on three.

The cross-entropy method draws weights from a normal distribution, lets each draw schedule one world, and
moves the distribution to the draws with the highest rewards (Rubinstein and Kroese, 2004; with decreasing
noise against premature convergence: Szita and Lorincz, 2006).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ropewalk as rw
from ropewalk.gym import PATH_FEATURES, SHARED_FEATURES, VectorSchedulerEnv

# A buffer that round robin fills with data that waits for the slow path.
SMALL_BUFFER = {"transfer.receive_buffer": "30 kB"}

# Divisors of the features, so that weights of equal size have about the same effect.
SCALES = {
    "srtt": 0.1, "rttvar": 0.02, "forward_delay": 0.1, "queueing": 0.05, "rtt_age": 0.1,
    "loss": 0.01, "backlog": 5.0,
}  # fmt: skip
NAMES = [*PATH_FEATURES, *SHARED_FEATURES, "always"]


class Policy:
    """One set of weights for each world, a row each."""

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self.weights = np.atleast_2d(weights) / [SCALES.get(name, 1.0) for name in NAMES]

    def actions(self, observations: NDArray[np.float32], mask: NDArray[Any]) -> NDArray[np.int64]:
        """The best path of each world, or to wait."""
        count, each = len(observations), len(PATH_FEATURES)
        paths = mask.shape[1] - 1
        of_paths = observations[:, : paths * each].reshape(count, paths, each)
        shared = observations[:, paths * each :]
        scores = np.zeros((count, paths + 1))
        scores[:, :paths] = np.einsum("npf,nf->np", of_paths, self.weights[:, :each])
        scores[:, :paths] += np.einsum("nf,nf->n", shared, self.weights[:, each:-1])[:, None]
        scores[:, :paths] += self.weights[:, -1:]
        scores[mask == 0] = -np.inf
        return scores.argmax(axis=1)


def returns(env: VectorSchedulerEnv, policy: Policy, seed: int) -> NDArray[np.float64]:
    """The reward of each world's policy in one episode; all use the same random numbers."""
    observations, info = env.reset(seed=[seed] * env.num_envs)
    earned = np.zeros(env.num_envs)
    running = np.ones(env.num_envs, bool)
    while running.any():
        actions = policy.actions(observations, info["action_mask"])
        observations, rewards, terminated, truncated, info = env.step(actions)
        earned += np.where(running, rewards, 0.0)
        running &= ~(terminated | truncated)
    return earned


def learn(
    scenario: rw.Scenario, *, iterations: int, population: int, duration: str, seed: int
) -> NDArray[np.float64]:
    """The mean of the last distribution."""
    env = VectorSchedulerEnv(
        scenario, population, delay_weight=0.5,
        set={"transfer.duration": duration, "transfer.warmup": "0 s"},
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    mean, spread = np.zeros(len(NAMES)), np.ones(len(NAMES))
    elite = max(2, population // 6)
    for iteration in range(iterations):
        weights = rng.normal(mean, spread, (population, len(NAMES)))
        # The mean of the distribution gets its own world, because it will be the result.
        weights[0] = mean
        earned = returns(env, Policy(weights), seed + 1 + iteration)
        best = weights[np.argsort(earned)[-elite:]]
        noise = max(0.0, 0.3 * (1 - iteration / (0.7 * iterations)))
        mean, spread = best.mean(axis=0), np.sqrt(best.var(axis=0) + noise**2)
        print(f"{iteration:3}: mean {earned[0]:.3f}, best {earned.max():.3f}", flush=True)
    return mean


class Learnt:
    """The learnt policy as a custom scheduler."""

    def __init__(self, weights: NDArray[np.float64]) -> None:
        self.policy = Policy(weights)

    def select(self, view: rw.SchedulerView) -> Any:
        observation = np.array([view.features()], np.float32)
        mask = np.array([[*(path.open for path in view.paths), True]])
        action = int(self.policy.actions(observation, mask)[0])
        return action if action < len(view.paths) else rw.Wait(0.01)


def compare(scenario: rw.Scenario, weights: NDArray[np.float64], seeds: int = 3) -> rw.Comparison:
    """Compares the learnt scheduler with others, in runs with other seeds."""
    rw.register_scheduler("learnt", lambda: Learnt(weights))
    names = ["learnt", "round-robin", "min-rtt", "daps", "lay"]
    known = [name for name in names if name in rw.schedulers()]
    return rw.compare(scenario, schedulers=known, seeds=seeds, seed=1000, series=False)


def main() -> None:
    """Learns, unless weights are given, and compares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenario", help="a scenario file")
    parser.add_argument("--weights", type=Path, help="compare these; learn nothing")
    parser.add_argument("--out", type=Path, help="keep what was learnt in this file")
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--population", type=int, default=48)
    parser.add_argument("--duration", default="20 s", help="of an episode")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    scenario = rw.Scenario.load(arguments.scenario, set=SMALL_BUFFER)
    if arguments.weights:
        known = json.loads(arguments.weights.read_text(encoding="utf-8"))
        weights = np.array([known[name] for name in NAMES])
    else:
        begun = time.perf_counter()
        weights = learn(
            scenario, iterations=arguments.iterations, population=arguments.population,
            duration=arguments.duration, seed=arguments.seed,
        )  # fmt: skip
        print(f"learnt in {time.perf_counter() - begun:.0f} s")
    if arguments.out:
        rounded = {name: round(float(w), 4) for name, w in zip(NAMES, weights, strict=True)}
        arguments.out.write_text(json.dumps(rounded, indent=2) + "\n", encoding="utf-8")
    comparison = compare(scenario, weights)
    table = comparison.table
    for at, label in enumerate(comparison.labels):
        goodput, delay = table["goodput_bps"][at], table["app_delay_mean_s"][at]
        print(f"{label:12} {goodput / 1e6:.3f} Mbit/s, mean delay {delay * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
