#!/usr/bin/env python3
"""Tries a built command on any system: a run, a prediction, and a sealed file over loopback.

    first_steps.py PATH/TO/ropewalk

The jobs for Windows and macOS of the release workflow run it, where the other tests of the packages cannot run.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT_S = 120


def main() -> None:
    """Runs all steps; the first that fails ends the program with a message."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    command = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as directory:
        simulate(command, Path(directory))
        transfer(command, Path(directory))
    print(f"{command}: run, predict, send and recv work")


def simulate(command: Path, directory: Path) -> None:
    """A scenario of the command, simulated and predicted: the goodput is below the rates of the links."""
    run = document(command, directory, "run", "wifi-lte")
    predicted = document(command, directory, "predict", "wifi-lte")
    goodput, bound = run["goodput_bps"], predicted["flow_control_bound_bps"]
    if not 0.5 * bound < goodput < 1.5 * bound:
        raise SystemExit(f"goodput of {goodput} bit/s, and a flow-control bound of {bound} bit/s")


def document(command: Path, directory: Path, *words: str) -> dict:
    """The JSON document of a command."""
    done = subprocess.run(
        [command, *words, "--json"], cwd=directory, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words)} failed with status {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def transfer(command: Path, directory: Path) -> None:
    """A file with random bytes, sent and received on this machine with keys."""
    (directory / "data").write_bytes(os.urandom(200_000))
    for name in ("me.key", "far.key"):
        subprocess.run([command, "keygen", name], cwd=directory, check=True, capture_output=True, timeout=LIMIT_S)
    show = [command, "keygen", "--public", "far.key"]
    public = subprocess.run(show, cwd=directory, check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout
    address = f"127.0.0.1:{free_port()}"
    receive = [command, "recv", "inbox", "--once", "--key", "far.key", "--listen", address]
    send = [command, "send", "data", "--to", address, "--key", "me.key", "--peer", public.strip()]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(receive, cwd=directory, **streams) as receiver:
        time.sleep(2)
        sent = subprocess.run(send, cwd=directory, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        if sent.returncode != 0:
            receiver.kill()
        log = receiver.communicate(timeout=LIMIT_S)[1]
    if (sent.returncode, receiver.returncode) != (0, 0):
        raise SystemExit(f"send: {sent.returncode}\n{sent.stderr}\nrecv: {receiver.returncode}\n{log}")
    received = [path for path in (directory / "inbox").rglob("data") if path.is_file()]
    if [path.read_bytes() for path in received] != [(directory / "data").read_bytes()]:
        raise SystemExit(f"the file did not arrive whole: {received}")


def free_port() -> int:
    """A UDP port that is free now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    main()
