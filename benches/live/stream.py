"""A bulk transfer over TCP or Multipath TCP: a sender that never stops and a receiver that measures.

    stream.py recv --buffer BYTES --seconds S --warmup W --out FILE [--mptcp] [--port P]
    stream.py send --to ADDRESS --seconds S [--congestion NAME] [--mptcp] [--port P]

The receiver takes one connection, and writes {"goodput_bps": ..., "bytes": ..., "seconds": ..., "longest_pause_s": ...} of what it
read after the warm-up. `--buffer` is what SO_RCVBUFFORCE is told: the kernel takes twice as much for its own
overhead, and offers a window of about as many bytes as were asked for (socket(7)).
"""

import argparse
import json
import socket
import time
from pathlib import Path

IPPROTO_MPTCP = 262
SO_RCVBUFFORCE = 33
PIECE = 1 << 18


def make_socket(mptcp: bool) -> socket.socket:
    protocol = IPPROTO_MPTCP if mptcp else socket.IPPROTO_TCP
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)


def receive(arguments: argparse.Namespace) -> None:
    listener = make_socket(arguments.mptcp)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if arguments.buffer:
        listener.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, arguments.buffer)
    listener.bind(("0.0.0.0", arguments.port))
    listener.listen(1)
    connection, _ = listener.accept()
    start = time.monotonic()
    measured, pause, room = 0, 0.0, bytearray(PIECE)
    now = start
    while now < start + arguments.seconds:
        connection.settimeout(start + arguments.seconds - now)
        try:
            length = connection.recv_into(room)
        except TimeoutError:
            break
        if length == 0:
            break
        before, now = now, time.monotonic()
        if now >= start + arguments.warmup:
            measured += length
            pause = max(pause, now - before)
    seconds = arguments.seconds - arguments.warmup
    figures = {"goodput_bps": measured * 8 / seconds, "bytes": measured, "seconds": seconds, "longest_pause_s": pause}
    Path(arguments.out).write_text(json.dumps(figures), encoding="utf-8")


def send(arguments: argparse.Namespace) -> None:
    connection = make_socket(arguments.mptcp)
    if arguments.congestion:
        # By the socket, not by sysctl: that allows a namespace only what is allowed to everybody.
        name = arguments.congestion.encode()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
    connection.connect((arguments.to, arguments.port))
    piece = bytes(PIECE)
    end = time.monotonic() + arguments.seconds + 1
    connection.settimeout(1)
    while time.monotonic() < end:
        try:
            connection.send(piece)
        except TimeoutError:
            continue
        except (BrokenPipeError, ConnectionResetError):
            return  # The receiver has seen enough.


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    roles = parser.add_subparsers(required=True)
    for name, role in (("recv", receive), ("send", send)):
        sub = roles.add_parser(name)
        sub.set_defaults(role=role)
        sub.add_argument("--port", type=int, default=5001)
        sub.add_argument("--mptcp", action="store_true")
        sub.add_argument("--seconds", type=float, required=True)
        if name == "recv":
            sub.add_argument("--buffer", type=int, default=0)
            sub.add_argument("--warmup", type=float, default=0.0)
            sub.add_argument("--out", required=True)
        else:
            sub.add_argument("--to", required=True)
            sub.add_argument("--congestion")
    arguments = parser.parse_args()
    arguments.role(arguments)


if __name__ == "__main__":
    main()
