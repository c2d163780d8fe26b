"""Sockets: messages over several paths at once, encrypted, with the simulator's engine.

>>> from ropewalk import net
>>> with net.listen("127.0.0.1:0") as listener:
...     target = listener.addresses, listener.public_key
...     with net.connect(target[0], peer=target[1]) as near, listener.accept() as far:
...         near.send(b"hello")
...         far.receive(timeout=5).data
b'hello'

:func:`listen` and :func:`connect` give a :class:`Listener` and an :class:`Association`; each pair of
an own address and one of the peer's is a path. Data is encrypted, and each end proves its
key, unless both give ``plain=True``. These calls block; other threads continue, and Ctrl-C works.
:mod:`ropewalk.net.aio` has the same calls for asyncio. Associations and listeners may be used by several
threads, but not across a fork. Every error is a :class:`NetError`, except for arguments of a wrong type.
"""

from ropewalk._ropewalk import Key, Message
from ropewalk.errors import (
    BindError,
    ClosedError,
    ConnectError,
    NetError,
    OptionError,
    TimedOut,
)
from ropewalk.net._blocking import Association, Listener, connect, listen
from ropewalk.net._control import ParameterChanges
from ropewalk.net._figures import (
    Counters,
    Parameters,
    PathEvent,
    PathStats,
    PathTimers,
    Stats,
    Status,
    StreamEvent,
    Undelivered,
)
from ropewalk.net._keys import generate_key, public_key
from ropewalk.net._options import Delivery, Extensions, Limits

__all__ = [
    "Association",
    "BindError",
    "ClosedError",
    "ConnectError",
    "Counters",
    "Delivery",
    "Extensions",
    "Key",
    "Limits",
    "Listener",
    "Message",
    "NetError",
    "OptionError",
    "ParameterChanges",
    "Parameters",
    "PathEvent",
    "PathStats",
    "PathTimers",
    "Stats",
    "Status",
    "StreamEvent",
    "TimedOut",
    "Undelivered",
    "connect",
    "generate_key",
    "listen",
    "public_key",
]
