"""Network namespaces without a name, TUN devices in them, and programs that run there."""

import ctypes
import fcntl
import os
import struct
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeVar

T = TypeVar("T")

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
LIBC = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raises the error of the last system call, if there was one."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def aside(work: Callable[[], T]) -> T:
    """Runs `work` on a thread of its own: a namespace belongs to the thread that entered it."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001  (raised again by the caller)
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


class Host:
    """A network namespace. It vanishes with this process and those that were started in it."""

    def __init__(self, name: str) -> None:
        self.name = name

        def make() -> int:
            check(LIBC.unshare(CLONE_NEWNET), "cannot create a network namespace")
            return os.open("/proc/thread-self/ns/net", os.O_RDONLY)

        self.handle = aside(make)
        self.ip("link", "set", "lo", "up")

    def inside(self, words: list[str | Path]) -> list[str]:
        """The command line that runs `words` here."""
        return ["nsenter", f"--net=/proc/self/fd/{self.handle}", *map(str, words)]

    def spawn(self, words: list[str | Path], stdin: int | None, stdout: int | IO[bytes], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
        """Starts a program here. `nsenter` becomes the program, so its process number is the program's."""
        return subprocess.Popen(
            self.inside(words), pass_fds=[self.handle], stdin=stdin, stdout=stdout, stderr=stderr
        )

    def ip(self, *words: str) -> None:
        """Runs `ip` here."""
        done = subprocess.run(
            self.inside(["ip", *words]), pass_fds=[self.handle], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise OSError(f"host {self.name}: `ip {' '.join(words)}`: {done.stderr.strip()}")

    def tun(self, device: str, address: str) -> int:
        """Creates a TUN device with an address (with its prefix length); returns the file to read packets from."""

        def make() -> int:
            check(LIBC.setns(self.handle, CLONE_NEWNET), "cannot enter a network namespace")
            file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
            return file

        file = aside(make)
        self.ip("address", "add", address, "dev", device)
        self.ip("link", "set", device, "mtu", "1500", "up")
        return file
