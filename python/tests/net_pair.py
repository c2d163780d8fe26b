"""Two ends of an association over loopback, for the tests of the sockets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ropewalk import net

LOOPBACK = "127.0.0.1:0"


@contextmanager
def pair(
    *, plain: bool = False, paths: int = 1, **options: Any
) -> Iterator[tuple[net.Association, net.Association]]:
    # Without encryption a path is identified by its addresses, so each path has its own.
    places = [f"127.0.0.{1 + path}:0" for path in range(paths)]
    with net.listen(places, plain=plain, **options) as listener:
        near = net.connect(
            listener.addresses,
            via=places,
            peer=listener.public_key,
            plain=plain,
            **options,
        )
        far = listener.accept(timeout=10)
        try:
            yield near, far
        finally:
            near.abort()
            far.abort()
