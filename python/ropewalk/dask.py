"""Sweeps on a cluster, by Dask: every point is a task.

>>> from distributed import Client
>>> from ropewalk.dask import sweep
>>> client = Client("scheduler:8786")  # doctest: +SKIP
>>> table = sweep("scenario.toml", vary={"path.lte.rtt": "20ms..400ms/20"}, client=client)  # doctest: +SKIP

Needs ``dask[distributed]``, and this package in the same version on every worker. The scenario
is sent with the tasks, and so are the schedulers that :func:`ropewalk.register_scheduler` has
registered here. Trace files that the scenario names must exist on the workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from ropewalk import _ropewalk as native
from ropewalk._progress import Progress, reporting
from ropewalk._scenario import Scenario, resolve
from ropewalk._scheduler import carry, registered, take
from ropewalk._sweep import SweepTable, checked, numbers_of, values_of

try:
    import distributed
except ImportError as missing:
    raise ImportError(
        "ropewalk.dask needs Dask's distributed scheduler: pip install 'dask[distributed]'"
    ) from missing

__all__ = ["sweep"]


def sweep(
    scenario: Scenario | str | PathLike[str],
    *,
    vary: Mapping[str, str | Iterable[Any]],
    seeds: int | str | Iterable[int] = 1,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    client: distributed.Client | None = None,
    out: str | PathLike[str] | None = None,
    fresh: bool = False,
    progress: Progress = False,
) -> SweepTable:
    """Run every combination of the values of some keys on a Dask cluster.

    The tables are those that :func:`ropewalk.sweep` makes, byte for byte.

    Parameters
    ----------
    scenario, vary, seeds, seed, set, fresh, progress
        As in :func:`ropewalk.sweep`.
    client
        The client of the cluster; the current one by default.
    out
        A Parquet file for the single runs. Finished runs go to a journal beside it, on this machine. The
        same call, :func:`ropewalk.sweep` or the command resumes an interrupted sweep.

    Raises
    ------
    ValueError, ScenarioError, RunError
        As in :func:`ropewalk.sweep`.
    RuntimeError
        A worker has another version of this package.
    """
    client = client or distributed.get_client()
    base = resolve(scenario, seed=seed, set=set)
    values = values_of(vary)
    begun = native.Sweep(base, values, numbers_of(seeds), out, None, fresh)
    left = begun.left()
    if left:
        schedulers = carry([base.scheduler, *_varied_schedulers(values)])
        job = (native.__version__, base.parts(), values, schedulers)
        # Unique keys, and no scattered data: Dask loses a task, or waits for ever, if a key that was
        # just released is used again.
        futures = client.map(_point, left, job=job, pure=False)
        try:
            with reporting(progress, "sweep") as report:
                for done, future in enumerate(distributed.as_completed(futures), start=1):
                    begun.keep(future.result())
                    if report is not None:
                        report(done / len(futures))
        finally:
            # After a failure the results of the other tasks are not needed.
            client.cancel(futures)
    return checked(SweepTable(begun.close()))


def _varied_schedulers(values: list[tuple[str, str | list[str]]]) -> list[str]:
    """The values of ``transfer.scheduler``, if it is varied."""
    names: list[str] = []
    for key, given in values:
        if key == "transfer.scheduler":
            names += [name.strip() for name in given.split(",")] if isinstance(given, str) else given
    return names


def _point(
    left: tuple[int, list[int]],
    *,
    job: tuple[str, Any, list[tuple[str, str | list[str]]], dict[str, bytes]],
) -> str:
    """Run one point with the seeds that are left; on a worker."""
    version, (text, name, sets, seed), values, schedulers = job
    if version != native.__version__:
        raise RuntimeError(
            f"this worker has ropewalk {native.__version__}, but the sweep was started with {version}"
        )
    take(schedulers)
    scenario = native.Scenario.parse(text, name, sets, seed, registered)
    point, seeds = left
    return native.sweep_point(scenario, values, point, seeds)
