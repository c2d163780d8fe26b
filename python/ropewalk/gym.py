"""Environments of Gymnasium to learn a scheduler; needs ``gymnasium``.

A step is one decision of a scheduler: on which path the next chunk goes, or whether to wait. Simulated
time stops during a decision, so the run equals, packet for packet, that of a scheduler that makes the same
decisions.

>>> from ropewalk.gym import SchedulerEnv  # doctest: +SKIP
>>> env = SchedulerEnv("scenario.toml")  # doctest: +SKIP
>>> observation, info = env.reset(seed=1)  # doctest: +SKIP
>>> observation, reward, terminated, truncated, info = env.step(env.WAIT)  # doctest: +SKIP

Actions
    0 to n - 1: send the first chunk that this path may take. On a path that may take none, this
    means to wait; ``info["action_mask"]`` has 1 for possible actions.
    n: wait until something changes, or for ``wait_s``.

Observations
    ``float32``, each number clipped to 0..10. First each path with :data:`PATH_FEATURES`, then
    :data:`SHARED_FEATURES`. ``SchedulerView.features()`` gives a scheduler in Python the same numbers.

Rewards
    The data delivered in order since the last decision: each bit is worth ``1 - delay_weight * delay``,
    with its delay between the applications in seconds, divided by the capacity of all paths. Without a weight,
    the rewards of an episode add up to the seconds that the paths, fully used, need for what was
    delivered.

Ends
    Truncated when the scenario's ``transfer.duration`` is over; terminated when ``transfer.bytes`` are
    delivered, or the association ends. The warm-up is not left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from ropewalk import _ropewalk as native
from ropewalk._scenario import Scenario, resolve

__all__ = ["PATH_FEATURES", "SHARED_FEATURES", "SchedulerEnv", "VectorSchedulerEnv"]

_PATH, _SHARED, _MOST = native.scheduler_features()

PATH_FEATURES: dict[str, str] = dict(_PATH)
"""The numbers of an observation for each path: name and meaning, in order."""
SHARED_FEATURES: dict[str, str] = dict(_SHARED)
"""The common numbers of an observation, after those of all paths."""

_Observation = NDArray[np.float32]

gymnasium.register(
    "ropewalk/Scheduler-v0",
    entry_point="ropewalk.gym:SchedulerEnv",
    vector_entry_point="ropewalk.gym:VectorSchedulerEnv",
)


class _Environments:
    """Environments, and the arrays that they fill."""

    def __init__(self, scenario: native.Scenario, count: int, weight: float, wait_s: float) -> None:
        self.paths = len(scenario.path_names)
        self.width = self.paths * len(PATH_FEATURES) + len(SHARED_FEATURES)
        self.native = native.VecEnv(scenario, count, weight, wait_s)
        self.masks = np.zeros((count, self.paths + 1), np.uint8)
        self.observations = np.zeros((count, self.width), np.float32)
        self.rewards = np.zeros(count)
        self.terminated = np.zeros(count, np.uint8)
        self.truncated = np.zeros(count, np.uint8)
        self.arrays = (
            self.observations, self.masks, self.rewards, self.terminated, self.truncated
        )

    def step(self, actions: NDArray[np.int64]) -> None:
        self.native.step(actions, self.arrays)

    def observe(self) -> None:
        self.native.observe(self.arrays)

    def space(self) -> gymnasium.spaces.Box:
        return gymnasium.spaces.Box(0.0, _MOST, (self.width,), np.float32)

    def progress(self, index: int) -> dict[str, Any]:
        time_s, delivered, delay = self.native.progress(index)
        mean = delay / delivered if delivered else 0.0
        return {"time_s": time_s, "delivered_bytes": delivered, "app_delay_mean_s": mean}


class SchedulerEnv(gymnasium.Env[_Observation, np.int64]):
    """One world, one decision per step; see the module for actions, observations and rewards.

    Parameters
    ----------
    scenario
        A :class:`ropewalk.Scenario`, or the name of a scenario file. Its scheduler is not used.
    delay_weight
        What a second of delay deducts from the value of a bit: with 1, a bit that takes a second is worth
        nothing; with 0, only goodput counts.
    wait_s
        How long a wait lasts at most, s. Shorter waits mean more decisions.
    set
        Changes of the scenario, as in :meth:`ropewalk.Scenario.set`.

    Raises
    ------
    ScenarioError
        The scenario is invalid.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        scenario: Scenario | str | PathLike[str],
        *,
        delay_weight: float = 0.5,
        wait_s: float = 0.01,
        set: Mapping[str, Any] | None = None,
    ) -> None:
        self._environments = _Environments(resolve(scenario, set=set), 1, delay_weight, wait_s)
        self.WAIT = self._environments.paths
        """The action that waits."""
        self.observation_space = self._environments.space()
        self.action_space = gymnasium.spaces.Discrete(self.WAIT + 1)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[_Observation, dict[str, Any]]:
        """Begin an episode; the same seed gives the same one.

        Parameters
        ----------
        seed
            ``transfer.seed`` of this episode; the seeds of the following episodes are derived from it.
            Without it, the next of these.
        options
            Not used.
        """
        super().reset(seed=seed)
        drawn = int(self.np_random.integers(2**63)) if seed is None else seed
        self._environments.native.reset(0, drawn)
        self._environments.observe()
        return self._environments.observations[0].copy(), self._info() | {"seed": drawn}

    def step(
        self, action: np.int64 | int
    ) -> tuple[_Observation, float, bool, bool, dict[str, Any]]:
        """Take a decision, and run until the next one.

        Returns
        -------
        tuple
            Observation, reward, terminated, truncated and ``info``: ``action_mask``, ``time_s``,
            ``delivered_bytes``, ``app_delay_mean_s``.

        Raises
        ------
        gymnasium.error.ResetNeeded
            The episode has ended, or was not started.
        """
        worlds = self._environments
        if worlds.terminated[0] or worlds.truncated[0] or not worlds.masks.any():
            raise gymnasium.error.ResetNeeded("call reset() first: no episode is under way")
        worlds.step(np.array([action], np.int64))
        ends = bool(worlds.terminated[0]), bool(worlds.truncated[0])
        return worlds.observations[0].copy(), float(worlds.rewards[0]), *ends, self._info()

    def _info(self) -> dict[str, Any]:
        mask = self._environments.masks[0].astype(np.int8)
        return {"action_mask": mask} | self._environments.progress(0)


class VectorSchedulerEnv(VectorEnv[_Observation, NDArray[np.int64], NDArray[Any]]):
    """Several worlds of one scenario, stepped together in Rust.

    Ended episodes are restarted at the next step, which has no reward and whose action is
    ignored (:attr:`gymnasium.vector.AutoresetMode.NEXT_STEP`).

    Parameters
    ----------
    scenario, delay_weight, wait_s, set
        As of :class:`SchedulerEnv`.
    num_envs
        How many worlds.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self,
        scenario: Scenario | str | PathLike[str],
        num_envs: int,
        *,
        delay_weight: float = 0.5,
        wait_s: float = 0.01,
        set: Mapping[str, Any] | None = None,
    ) -> None:
        self._environments = _Environments(resolve(scenario, set=set), num_envs, delay_weight, wait_s)
        self.WAIT = self._environments.paths
        """The action that waits."""
        self.num_envs = num_envs
        self.single_observation_space = self._environments.space()
        self.single_action_space = gymnasium.spaces.Discrete(self.WAIT + 1)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[_Observation, dict[str, Any]]:
        """Begin an episode in every world.

        Parameters
        ----------
        seed
            The seed of the first world; further worlds have consecutive numbers. Or a list with one for each.
            Seeds of later episodes are derived from these.
        options
            Not used.
        """
        if isinstance(seed, Sequence):
            if len(seed) != self.num_envs:
                raise ValueError(f"{len(seed)} seeds for {self.num_envs} environments")
            super().reset(seed=None, options=options)
            seeds = [self._drawn() if one is None else one for one in seed]
        else:
            super().reset(seed=seed, options=options)
            first = self._drawn() if seed is None else seed
            seeds = [first + index for index in range(self.num_envs)]
        for index, one in enumerate(seeds):
            self._environments.native.reset(index, one)
        self._environments.observe()
        return self._environments.observations.copy(), self._info() | {"seed": np.array(seeds, np.uint64)}

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[_Observation, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Take one decision in each world.

        Returns
        -------
        tuple
            Observations, rewards, terminated, truncated: one row for each world; and ``info`` with
            ``action_mask``.
        """
        worlds = self._environments
        if not worlds.masks.any():
            raise gymnasium.error.ResetNeeded("call reset() first: no episode is under way")
        worlds.step(np.ascontiguousarray(actions, np.int64))
        ends = worlds.terminated.astype(np.bool_), worlds.truncated.astype(np.bool_)
        return worlds.observations.copy(), worlds.rewards.copy(), *ends, self._info()

    def progress(self) -> dict[str, NDArray[Any]]:
        """For each world: ``time_s``, ``delivered_bytes`` and ``app_delay_mean_s`` of its episode."""
        each = [self._environments.progress(index) for index in range(self.num_envs)]
        return {key: np.array([one[key] for one in each]) for key in each[0]}

    def _drawn(self) -> int:
        return int(self.np_random.integers(2**62))

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self._environments.masks.astype(np.int8)}
