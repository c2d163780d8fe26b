"""Arrays in and out of the closed forms. Shapes are handled here, loops run in the native half."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

#: A float for a single case, else an array with the shape of the cases. Type checkers cannot tell which from arguments
#: that may be any of both, and would refuse what is correct.
Answer: TypeAlias = Any


def elementwise(
    *arguments: ArrayLike,
) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """The arguments as flat columns of one length, and room for the answers in their shape."""
    arrays = np.broadcast_arrays(*(floats(each) for each in arguments))
    return [np.array(each).reshape(-1) for each in arrays], np.empty(arrays[0].shape)


def in_a_row(values: NDArray[np.float64], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The values, broadcast to a shape and flattened: the native half has no shapes."""
    return np.array(np.broadcast_to(values, shape)).reshape(-1)


def floats(values: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(values, dtype=np.float64)


def plain(answers: NDArray[np.float64]) -> Answer:
    return float(answers) if answers.ndim == 0 else answers
