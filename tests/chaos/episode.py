"""One episode: two hosts, some links, all workloads, a schedule of faults, and the checks afterwards."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults import Fault, draw
from files import RETRY, Files
from hosts import Host
from links import Links, far_address, near_address
from services import Service

HERE = Path(__file__).resolve().parent
WARM_UP_S = 4.0
"""Time before the first fault, in which programs allocate what they need once."""
START_S = 20.0
"""Most time until the server behind the exit listens."""
SETTLE_S = 60.0
"""Everything has to be finished within this time after the last fault."""
NOTICE_S = 10.0
"""How long after a disk was full a program may still end because of it: it says goodbye to its peer first."""
INBOX = "96m"
PORTS = {"recv": 9899, "exit": 9900, "echo": 9901}
SOCKS, ORIGIN = 1080, 7000


@dataclass(frozen=True)
class Programs:
    """What is tried."""

    ropewalk: Path
    messages: Path


@dataclass
class Timeline:
    """Times of all faults, by the wall clock."""

    entries: list[tuple[float, float, Fault]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, began: float, fault: Fault) -> None:
        with self.lock:
            self.entries.append((began, time.time(), fault))

    def within(self, kinds: set[tuple[str, str]], began: float, ended: float) -> bool:
        """Whether one of these faults, by kind and target, was active at some time in between."""
        with self.lock:
            return any(
                (fault.kind, fault.target) in kinds and since <= ended and until >= began
                for since, until, fault in self.entries
            )


class Episode:
    """Hosts, links, programs and workloads of one seed."""

    def __init__(
        self, programs: Programs, seed: int, folder: Path, seconds: float, kinds: list[str] | None, defects: bool
    ) -> None:
        self.programs, self.seed, self.folder, self.defects = programs, seed, folder, defects
        source = random.Random(f"{seed}/world")
        self.count = source.choice([2, 3])
        self.faults = draw(seed, seconds, self.count, kinds)
        self.hosts = {name: Host(name) for name in ("near", "far")}
        self.by_name = source.random() < 0.5
        self.address = dict.fromkeys(range(1, self.count + 1), 1)
        self.links = self.make_links(source)
        self.inbox = folder / "inbox"
        self.timeline = Timeline()
        self.services = self.make_services()
        self.files = self.make_files()
        self.began = 0.0
        self.holds: dict[tuple[str, str], int] = {}
        self.disk_full_until = 0.0
        self.lock = threading.Lock()
        self.readdressing = threading.Lock()

    def make_links(self, source: random.Random) -> Links:
        plans = []
        for link in range(1, self.count + 1):
            plans.append(
                {
                    "near": self.hosts["near"].tun(f"link{link}", f"{near_address(link)}/24"),
                    "far": self.hosts["far"].tun(f"link{link}", f"{far_address(link)}/24"),
                    "rate": source.uniform(8e6, 25e6),
                    "delay": source.uniform(0.003, 0.06),
                    "loss": source.choice([0.0, 0.0, 0.001, 0.01]),
                }
            )
        self.plans = plans
        return Links(plans, f"{self.seed}/links", self.folder / "links.log")

    def key(self, name: str) -> str:
        """Creates a key; returns the public key."""
        words = [self.programs.ropewalk, "keygen", self.folder / f"{name}.key"]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    def reach(self, name: str, server: str) -> list[str | Path]:
        """Options by which a near program reaches a far one."""
        to = ",".join(f"{far_address(link)}:{PORTS[server]}" for link in self.address)
        words = ["--to", to, "--peer", self.public[server], "--key", self.folder / f"{name}.key"]
        if self.by_name or name == "messages":
            words += ["--from", ",".join(f"link{link}" for link in self.address)]
        return words

    def listen(self, name: str, client: str) -> list[str | Path]:
        words: list[str | Path] = ["--key", self.folder / f"{name}.key", "--allow", self.public[client]]
        for link in self.address:
            words += ["--listen", f"{far_address(link)}:{PORTS[name]}"]
        return words

    def make_services(self) -> dict[str, Service]:
        self.public = {name: self.key(name) for name in (*PORTS, "send", "near", "messages")}
        ropewalk, messages, traffic = self.programs.ropewalk, self.programs.messages, HERE / "traffic.py"
        near, far = self.hosts["near"], self.hosts["far"]
        socks = ["--socks", str(SOCKS)]
        echo = ["serve", *self.listen("echo", "messages"), *(["--defect", "yes"] if self.defects else [])]
        origin = ["serve", str(ORIGIN), *(["defect"] if self.defects else [])]
        rows: list[tuple[str, Host, list[str | Path], bool]] = [
            ("recv", far, [ropewalk, "recv", self.inbox, *self.listen("recv", "send")], False),
            ("exit", far, [ropewalk, "proxy", "exit", "--allow-private", *self.listen("exit", "near")], False),
            ("echo", far, [messages, *echo], False),
            ("origin", far, [sys.executable, traffic, *origin], False),
            ("near", near, [ropewalk, "proxy", *self.reach("near", "exit"), *socks], False),
            ("traffic", near, [sys.executable, traffic, "run", str(SOCKS), str(ORIGIN), str(self.seed)], True),
            ("messages", near, [messages, "run", *self.reach("messages", "echo")], True),
        ]
        services = {name: Service(name, host, words, self.folder, ends) for name, host, words, ends in rows}
        # `recv` ends with an error when nothing can be written.
        services["recv"].may_end = lambda: time.time() < self.disk_full_until
        return services

    def make_files(self) -> Files:
        words = [self.programs.ropewalk, "send", "--retry", RETRY, *self.reach("send", "recv")]
        outbox = self.folder / "outbox"
        outbox.mkdir()
        log = self.folder / "send.log"
        return Files(self.hosts["near"], words, outbox, self.inbox, log, str(self.seed), self.defects)

    def start(self) -> None:
        self.inbox.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={INBOX}", "tmpfs", self.inbox], check=True)
        for name in ("recv", "exit", "echo", "origin"):
            self.services[name].start()
        origin = self.services["origin"].output
        until = time.time() + START_S
        while not origin.read_text(encoding="utf-8") and time.time() < until:
            time.sleep(0.1)
        for name in ("near", "messages"):
            self.services[name].start()
        time.sleep(0.5)
        self.services["traffic"].start()
        self.files.start()
        self.began = time.time()

    def save(self) -> None:
        """The data that a later analysis needs."""
        document: dict[str, Any] = {
            "seed": self.seed,
            "links": [{key: plan[key] for key in ("rate", "delay", "loss")} for plan in self.plans],
            "near_ends_by_interface": self.by_name,
            "faults": [fault.document() for fault in self.faults],
            "done": [
                {"began": began - self.began, "ended": ended - self.began, **fault.document()}
                for began, ended, fault in self.timeline.entries
            ],
        }
        (self.folder / "schedule.json").write_text(json.dumps(document, indent=1), encoding="utf-8")

    # Faults.

    def inflict(self, fault: Fault) -> None:
        """Runs one fault on a separate thread, and undoes it."""
        began = time.time()
        act = getattr(self, "fault_" + fault.kind.replace("-", "_"))
        act(fault)
        self.timeline.note(began, fault)

    def hold(self, what: str, target: str, by: int) -> int:
        """Number of active faults of a kind on a target: the last one undoes it."""
        with self.lock:
            count = self.holds.get((what, target), 0) + by
            self.holds[what, target] = count
            return count

    def concerned(self, target: str) -> list[int]:
        """Links by their numbers."""
        return list(self.address) if target == "all" else [int(target[4:])]

    def set_cut(self, target: str, by: int) -> None:
        for link in self.concerned(target):
            self.links.tell(link=link, cut=self.hold("cut", f"link{link}", by) > 0)

    def fault_cut(self, fault: Fault) -> None:
        self.set_cut(fault.target, 1)
        time.sleep(fault.seconds)
        self.set_cut(fault.target, -1)

    def fault_flap(self, fault: Fault) -> None:
        until = time.time() + fault.seconds
        source = random.Random(f"{self.seed}/flap/{fault.at}")
        while time.time() < until:
            self.set_cut(fault.target, 1)
            time.sleep(source.uniform(0.02, 0.3))
            self.set_cut(fault.target, -1)
            time.sleep(source.uniform(0.02, 0.3))

    def fault_device_down(self, fault: Fault) -> None:
        near = self.hosts["near"]
        if self.hold("down", fault.target, 1) == 1:
            near.ip("link", "set", fault.target, "down")
        time.sleep(fault.seconds)
        if self.hold("down", fault.target, -1) == 0:
            near.ip("link", "set", fault.target, "up")

    def fault_rebind(self, fault: Fault) -> None:
        how = "address" if fault.share > 0.5 else "port"
        for link in self.concerned(fault.target):
            self.links.tell(link=link, rebind=how)

    def fault_readdress(self, fault: Fault) -> None:
        """The interface loses its address, and gets another one after a while."""
        link, near = int(fault.target[4:]), self.hosts["near"]
        with self.readdressing:
            old = self.address[link]
            new = self.address[link] = 11 + (old + 1) % 80
            near.ip("address", "del", f"{near_address(link, old)}/24", "dev", fault.target)
            time.sleep(fault.seconds)
            near.ip("address", "add", f"{near_address(link, new)}/24", "dev", fault.target)

    def impair(self, fault: Fault) -> None:
        link = int(fault.target[4:])
        self.hold(fault.kind, fault.target, 1)
        self.links.tell(**{"link": link, fault.kind: fault.share})
        time.sleep(fault.seconds)
        if self.hold(fault.kind, fault.target, -1) == 0:
            self.links.tell(**{"link": link, fault.kind: 0.0})

    fault_reorder = fault_duplicate = fault_corrupt = impair

    def fault_pause(self, fault: Fault) -> None:
        service = self.services[fault.target]
        service.signal(signal.SIGSTOP)
        time.sleep(fault.seconds)
        service.signal(signal.SIGCONT)

    def fault_kill(self, fault: Fault) -> None:
        if fault.target == "send":
            self.files.kill()
            return
        service = self.services[fault.target]
        service.kill()
        time.sleep(fault.seconds)
        if self.hold("start", fault.target, 1) == 1 and not service.wanted:
            service.start()
        self.hold("start", fault.target, -1)

    def fault_disk_full(self, fault: Fault) -> None:
        filler = self.inbox / ".ropewalk-filler"
        with self.lock:
            full = filler.open("wb", buffering=0)
        try:
            until = time.time() + fault.seconds
            self.disk_full_until = max(self.disk_full_until, until + NOTICE_S)
            while time.time() < until:
                try:
                    full.write(bytes(1 << 16))
                except OSError:
                    time.sleep(0.01)
        finally:
            full.close()
            filler.unlink(missing_ok=True)

    def leave(self) -> None:
        """Removes everything that belongs to this process."""
        self.links.stop()
        subprocess.run(["umount", "--lazy", self.inbox], check=False)
        for plan in self.plans:
            os.close(plan["near"])
            os.close(plan["far"])
        for host in self.hosts.values():
            os.close(host.handle)
