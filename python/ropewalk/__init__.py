"""Simulate, predict and run multipath transport.

>>> import ropewalk as rw
>>> run = rw.run("scenario.toml", scheduler="daps", seed=1)  # doctest: +SKIP
>>> run.goodput_bps, run.paths["lte"].srtt_s  # doctest: +SKIP

:func:`run` runs a scenario, :func:`compare` several schedulers or values side by side, and :func:`sweep`
 a grid of values (:mod:`ropewalk.dask`: on a cluster). :func:`register_scheduler` adds your own
scheduler; :mod:`ropewalk.gym` has environments to learn one. :func:`predict` evaluates the closed forms,
which :mod:`ropewalk.models` offers for arrays, and :func:`tune` finds window limits; :func:`measure`
makes a scenario of the links that you have, and :func:`advise` says which of them to use, and how. :mod:`ropewalk.net`
has the sockets. Quantities are in bits per second, bytes and seconds, as their names say. Every error
that the package itself raises is a :class:`RopewalkError`.
"""

from ropewalk import models, net
from ropewalk._advise import Advice, AdvisedLink, AdviseCase, Choice, advise
from ropewalk._compare import ComparedRun, Comparison, compare
from ropewalk._delays import DelayDistribution, Ecdf
from ropewalk._figures import (
    Delays,
    DirectionResult,
    EngineFigures,
    FlowResult,
    OutOfOrder,
    PathResult,
    ReceiveBuffer,
)
from ropewalk._measure import MeasuredDirection, MeasuredLink, Measurement, measure
from ropewalk._predict import (
    PathPrediction,
    PeriodPrediction,
    Prediction,
    SlotPath,
    SlotPrediction,
    SlotRow,
    SlotScheduler,
    predict,
    predict_slot,
)
from ropewalk._results import Arrivals, Paths, Sequence
from ropewalk._ropewalk import __version__
from ropewalk._run import Run, run
from ropewalk._scenario import Scenario
from ropewalk._scheduler import (
    Scheduler,
    SchedulerPath,
    SchedulerView,
    SentReport,
    Wait,
    register_scheduler,
    schedulers,
)
from ropewalk._sweep import SweepTable, merge_sweeps, sweep
from ropewalk._table import Table
from ropewalk._tune import TunedPath, Tuning, tune
from ropewalk.errors import (
    ModelError,
    NetError,
    NotRecordedError,
    RopewalkError,
    RunError,
    RunWarning,
    ScenarioError,
)

__all__ = [
    "Advice",
    "AdviseCase",
    "AdvisedLink",
    "Arrivals",
    "Choice",
    "ComparedRun",
    "Comparison",
    "DelayDistribution",
    "Delays",
    "DirectionResult",
    "Ecdf",
    "EngineFigures",
    "FlowResult",
    "MeasuredDirection",
    "MeasuredLink",
    "Measurement",
    "ModelError",
    "NetError",
    "NotRecordedError",
    "OutOfOrder",
    "PathPrediction",
    "PathResult",
    "Paths",
    "PeriodPrediction",
    "Prediction",
    "ReceiveBuffer",
    "RopewalkError",
    "Run",
    "RunError",
    "RunWarning",
    "Scenario",
    "ScenarioError",
    "Scheduler",
    "SchedulerPath",
    "SchedulerView",
    "SentReport",
    "Sequence",
    "SlotPath",
    "SlotPrediction",
    "SlotRow",
    "SlotScheduler",
    "SweepTable",
    "Table",
    "TunedPath",
    "Tuning",
    "Wait",
    "__version__",
    "advise",
    "compare",
    "measure",
    "merge_sweeps",
    "models",
    "net",
    "predict",
    "predict_slot",
    "register_scheduler",
    "run",
    "schedulers",
    "sweep",
    "tune",
]
