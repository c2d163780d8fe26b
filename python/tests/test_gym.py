"""The environments obey Gymnasium's rules, and agree with the simulator."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ropewalk as rw

gymnasium = pytest.importorskip("gymnasium")

from ropewalk import gym  # noqa: E402

SHORT = {"transfer.duration": "2 s", "transfer.warmup": "0 s"}
EXAMPLES = Path(__file__).parents[1] / "examples"


def least_rtt(observation: np.ndarray, mask: np.ndarray) -> int:
    """The open path with the least smoothed round trip."""
    place = list(gym.PATH_FEATURES).index("srtt")
    rtts = observation[place :: len(gym.PATH_FEATURES)][: len(mask) - 1]
    return int(np.where(mask[:-1] == 1, rtts, np.inf).argmin())


def test_gymnasium_finds_no_fault(scenario: rw.Scenario) -> None:
    from gymnasium.utils.env_checker import check_env

    made = gymnasium.make("ropewalk/Scheduler-v0", scenario=scenario, set=SHORT)
    check_env(made.unwrapped)


def test_an_episode_is_the_run_of_a_scheduler_that_decides_likewise(scenario: rw.Scenario) -> None:
    class Likewise:
        def select(self, view: rw.SchedulerView) -> Any:
            mask = np.array([*(path.open for path in view.paths), True])
            return least_rtt(np.array(view.features(), np.float32), mask)

    rw.register_scheduler("likewise", Likewise)
    env = gym.SchedulerEnv(scenario, set=SHORT)
    for seed in (1, 2):
        observation, info = env.reset(seed=seed)
        over = False
        while not over:
            action = least_rtt(observation, info["action_mask"])
            observation, _, terminated, over, info = env.step(action)
            assert not terminated
        run = rw.run(scenario, scheduler="likewise", seed=seed, set=SHORT)
        assert info["delivered_bytes"] == run.delivered_bytes
        assert info["app_delay_mean_s"] == pytest.approx(run.app_delay_s.mean, rel=1e-3)
        assert info["time_s"] == 2


def test_rewards_add_up_to_goodput_and_delay(scenario: rw.Scenario) -> None:
    totals = []
    for weight in (0.0, 2.0):
        env = gym.SchedulerEnv(scenario, delay_weight=weight, set=SHORT)
        observation, info = env.reset(seed=3)
        total, over = 0.0, False
        while not over:
            action = least_rtt(observation, info["action_mask"])
            observation, reward, _, over, info = env.step(action)
            total += reward
        worth = 8 * info["delivered_bytes"] / 3e6
        assert total == pytest.approx(worth * (1 - weight * info["app_delay_mean_s"]), rel=1e-3)
        totals.append(total)
    assert totals[0] > totals[1]


def test_a_wanted_transfer_ends_and_must_be_begun_anew(scenario: rw.Scenario) -> None:
    env = gym.SchedulerEnv(scenario, set={"transfer.bytes": "20 kB"})
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    observation, info = env.reset(seed=1)
    terminated = False
    while not terminated:
        action = least_rtt(observation, info["action_mask"])
        observation, _, terminated, truncated, info = env.step(action)
        assert not truncated
    assert info["delivered_bytes"] == 20_000
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    env.reset()


def test_many_worlds_are_as_many_single_ones(scenario: rw.Scenario) -> None:
    count, steps = 3, 400
    actions = np.random.default_rng(0).integers(0, 3, (steps, count))
    many = gym.VectorSchedulerEnv(scenario, count, set=SHORT)
    rows, info = many.reset(seed=5)
    assert info["seed"].tolist() == [5, 6, 7]
    singles = [gym.SchedulerEnv(scenario, set=SHORT) for _ in range(count)]
    for index, single in enumerate(singles):
        observation, _ = single.reset(seed=5 + index)
        assert np.array_equal(rows[index], observation)
    for step in range(steps):
        rows, rewards, terminated, truncated, info = many.step(actions[step])
        for index, single in enumerate(singles):
            one = single.step(actions[step, index])
            assert np.array_equal(rows[index], one[0])
            assert (rewards[index], terminated[index], truncated[index]) == one[1:4]
            assert np.array_equal(info["action_mask"][index], one[4]["action_mask"])
    assert many.observation_space.contains(rows)


def test_worlds_begin_anew_by_themselves_and_differently(scenario: rw.Scenario) -> None:
    env = gym.VectorSchedulerEnv(scenario, 2, set=SHORT | {"path.lte.loss": 0.05})
    assert env.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.NEXT_STEP

    def play() -> list[tuple[int, float]]:
        ends, earned = [], np.zeros(2)
        observations, info = env.reset(seed=[7, 7])
        was_over = np.zeros(2, bool)
        while len(ends) < 6:
            masks = info["action_mask"]
            actions = [least_rtt(o, m) for o, m in zip(observations, masks, strict=True)]
            observations, rewards, _, truncated, info = env.step(np.array(actions))
            assert not rewards[was_over].any()
            earned += rewards
            for index in np.flatnonzero(truncated):
                ends.append((int(index), float(earned[index])))
                earned[index] = 0
            was_over = truncated
        return ends

    first = play()
    assert first == play(), "equal seeds, equal episodes"
    of_world = {index: [e for i, e in first if i == index] for index in (0, 1)}
    assert of_world[0] == of_world[1] and len(set(of_world[0])) == 3


def test_what_is_not_possible_is_refused(scenario: rw.Scenario) -> None:
    for arguments in ({"wait_s": 0}, {"delay_weight": -1}, {"delay_weight": float("nan")}):
        with pytest.raises(ValueError, match=next(iter(arguments))):
            gym.SchedulerEnv(scenario, **arguments)
    with pytest.raises(ValueError, match="at least one"):
        gym.VectorSchedulerEnv(scenario, 0)
    with pytest.raises(rw.RunError, match=r"world.associations = 2"):
        gym.SchedulerEnv(scenario, set={"world.associations": 2}).reset()
    many = gym.VectorSchedulerEnv(scenario, 2)
    with pytest.raises(ValueError, match="3 seeds for 2"):
        many.reset(seed=[1, 2, 3])
    many.reset(seed=1)
    with pytest.raises(ValueError, match="1 actions for 2"):
        many.step(np.array([0]))


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("learn", EXAMPLES / "learn_scheduler.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def small(example: Any) -> rw.Scenario:
    path = Path(__file__).parents[2] / "scenarios" / "wifi-lte.toml"
    return rw.Scenario.load(path, set=example.SMALL_BUFFER)


def test_the_example_learns(example: Any, small: rw.Scenario) -> None:
    short = {"iterations": 5, "population": 24, "duration": "8 s", "seed": 1}
    learnt = example.learn(small, **short)
    assert np.array_equal(learnt, example.learn(small, **short)), "equal seeds, equal lessons"
    env = gym.VectorSchedulerEnv(small, 2, set={"transfer.duration": "8 s", "transfer.warmup": "0 s"})
    policy = example.Policy(np.stack([np.zeros_like(learnt), learnt]))
    before, after = example.returns(env, policy, 99)
    assert after > 1.2 * before


def test_what_the_example_learnt_beats_round_robin(example: Any, small: rw.Scenario) -> None:
    known = json.loads((EXAMPLES / "wifi-lte-weights.json").read_text(encoding="utf-8"))
    weights = np.array([known[name] for name in example.NAMES])
    comparison = example.compare(small, weights, seeds=2)
    runs = {(one.label, one.seed): one.run for one in comparison.runs}
    for seed in (1000, 1001):
        learnt, robin = runs["learnt", seed], runs["round-robin", seed]
        assert learnt is not None and robin is not None
        assert learnt.goodput_bps > robin.goodput_bps, seed
        assert learnt.app_delay_s.mean < robin.app_delay_s.mean, seed
