"""One run: the machines and programs, what is expected of them, and what was found."""

import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

from machines import CLIENT_LINKS, HUB, HUB_NAME, L1, L2, LAN, NAME_SERVERS, PRIV, RESOLV_CONF, TUNNEL_NETWORKS, WAN
from machines import Machine, World, differences, names_file, packet_socket, state_of
from watch import Findings, Judge, Watch, watch_hub, watch_links

TRAFFIC = Path(__file__).resolve().with_name("traffic.py")
NAME, DEVICE, TABLE = "home", "rw-home", "ropewalk-home"
CONFIGURATION = Path(f"/etc/ropewalk/tunnel/{NAME}.toml")
CLOSES_S = 2.0
"""The client has to be closed so soon after the start of a tunnel, unless it was closed before."""
IN_FLIGHT_S = 0.1
"""Packets that passed the filter before it was closed have left by then."""
ENDS_S = 15.0
"""How long a command may take to end."""
CATCHES_S = 3.0
"""How long a new process may take until it handles signals."""
SAME_S = 1.5
"""How long the kernel may take to remove what ends with a process."""
ACTS_S = 0.3
"""How long programs get to react to a step before it is judged."""
SHOWN = 20
"""Maximum number of lines that are printed for a step. All of them are kept."""
WARM_UP_S = 0.5
KINDS_SENT = 25
"""So many kinds of packets have to leave the client while it is open. Otherwise the watch or the programs are defective."""


class Trial:
    """The machines and programs of a run, what is expected of them, and what was found."""

    def __init__(self, binary: Path, seed: int, folder: Path, verbose: bool) -> None:
        # Crashes on purpose need no images of memory.
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        self.binary, self.folder, self.verbose = binary, folder, verbose
        self.random = random.Random(f"{seed}/steps")
        self.state = folder / "state"
        self.judge, self.watch, self.world = Judge(), Watch(), World()
        self.processes: dict[str, subprocess.Popen] = {}
        self.tunnel: subprocess.Popen | None = None
        self.held = False
        """Whether the client stays closed until `tunnel undo`."""
        self.may_end = False
        """Whether the tunnel may end by itself."""
        self.plan: deque[str] = deque()
        """Names of the steps that come next."""
        self.steps, self.received = 0, 0
        self.starts, self.connected = 0, 0
        """Starts that were given time to connect, and those that did."""
        self.found, self.total = Findings(), Findings()
        self.record: list[str] = []
        self.began = time.time()
        self.keys = {name: self.key(name) for name in ("hub", "client")}
        self.hub_before = state_of(self.world.hub)
        self.spawn("servers", self.world.internet, [sys.executable, TRAFFIC, "serve"])
        watch_hub(self.watch, self.world)
        self.start_hub()
        self.first_names()
        self.boot()
        self.warm_up()

    # ---- Programs.

    def spawn(self, name: str, machine: Machine, words: list[str | Path], also: tuple[int, ...] = ()) -> subprocess.Popen:
        """Starts a program on a machine, with a log in the folder of the run."""
        (self.folder / "received").touch()
        place = "received" if name == "programs" else f"{name}.log"
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.folder)}
        environment["ROPEWALK_RUNTIME_DIR"] = f"/run/{machine.name}"
        with (self.folder / f"{name}.log").open("ab") as log, (self.folder / place).open("ab") as output:
            new = subprocess.Popen(
                machine.inside(words),
                pass_fds=[machine.handle, *also],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=log,
                env=environment,
            )
        self.processes[name] = new
        return new

    def kill(self, name: str) -> None:
        if process := self.processes.pop(name, None):
            process.kill()
            process.wait()

    def stop(self) -> None:
        for name in list(self.processes):
            self.kill(name)

    def key(self, name: str) -> str:
        """Creates a key; returns the public key."""
        words = [self.binary, "keygen", self.folder / f"{name}.key"]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    def start_hub(self) -> None:
        words = ["serve", "--allow", self.keys["client"], "--key", self.folder / "hub.key", "--listen", HUB]
        words += ["--state-directory", self.folder / "hub", "--network", TUNNEL_NETWORKS]
        self.spawn("hub", self.world.hub, [self.binary, "tunnel", *words])

    def command(self, name: str, *words: str | Path) -> subprocess.Popen:
        """Starts `ropewalk tunnel` on the client."""
        return self.spawn(name, self.client, [self.binary, "tunnel", *words, "--state-directory", self.state])

    def finished(self, process: subprocess.Popen, what: str) -> int:
        """Waits for a command to end; returns its status."""
        try:
            return process.wait(ENDS_S)
        except subprocess.TimeoutExpired:
            self.differs(f"{what} did not end within {ENDS_S:g} s")
            process.kill()
            return process.wait()

    def name_servers(self, word: str) -> None:
        """`silent` or `answer`."""
        servers = self.processes["servers"]
        assert servers.stdin
        servers.stdin.write(f"{word}\n".encode())
        servers.stdin.flush()

    # ---- The life of the client.

    @property
    def client(self) -> Machine:
        assert self.world.client
        return self.world.client

    def first_names(self) -> None:
        """Writes /etc/resolv.conf in one of its shapes."""
        text = "search example.org\n" + "".join(f"nameserver {server}\n" for server in NAME_SERVERS)
        if self.random.random() < 0.3:
            real = RESOLV_CONF.with_name("resolv.real.conf")
            real.write_text(text)
            RESOLV_CONF.symlink_to(real.name)
        else:
            RESOLV_CONF.write_text(text)
            RESOLV_CONF.chmod(self.random.choice([0o644, 0o640]))
        self.names = names_file()

    def boot(self) -> None:
        """Replaces the client by a new one, which nothing has closed. Files stay, except those below /run."""
        self.judge.is_router = self.random.random() < 0.3
        rp_filter, proxy_arp = self.random.choice([0, 0, 1, 2]), self.random.random() < 0.5
        self.judge.direct = [*LAN.networks] if self.random.random() < 0.4 else []
        self.kill("programs")
        self.kill("probes")
        client = self.world.new_client(self.judge.is_router, rp_filter, proxy_arp)
        # What the former client has sent is not judged by what is expected of the new one.
        list(self.watch.take())
        for file in Path("/run").iterdir():
            if file.name != self.world.hub.name:
                shutil.rmtree(file)
        options = f'to = ["{HUB_NAME}"]\npeer = "{self.keys["hub"]}"\nkey = "{self.folder / "client.key"}"\n'
        options += f"direct = {self.judge.direct}\n" if self.judge.direct else ""
        CONFIGURATION.parent.mkdir(parents=True, exist_ok=True)
        CONFIGURATION.write_text(options)
        self.plug()
        self.before = state_of(client)
        self.traits = f"router {self.judge.is_router}, rp_filter {rp_filter}, proxy ARP {proxy_arp}, direct {bool(self.judge.direct)}"
        self.spawn("programs", client, [sys.executable, TRAFFIC, "send"])

    def plug(self) -> None:
        """Makes the links of the client, with what watches and probes them."""
        self.kill("probes")
        self.world.plug()
        self.add_own_rules()
        watch_links(self.watch, self.world)
        internet, neighbour, private = self.world.internet, self.world.neighbour, self.world.private
        ends = [(internet, L1), (internet, L2), (internet, WAN), (neighbour, LAN), (private, PRIV)]
        sockets = [packet_socket(machine, link.far_device) for machine, link in ends]
        files = tuple(one.fileno() for one in sockets)
        self.spawn("probes", internet, [sys.executable, TRAFFIC, "probe", ",".join(map(str, files))], files)
        for one in sockets:
            one.close()

    def add_own_rules(self) -> None:
        """Rules of the packet filter that are none of the tunnel."""
        rules = "table inet own { chain output { type filter hook output priority 10; ip daddr 192.0.2.99 drop; }; }"
        self.client.run("nft", "-f", "-", text=f"table inet own\ndelete table inet own\n{rules}\n")

    def configure(self) -> None:
        """Gives the links of the client their addresses and routes back."""
        self.client.configure(CLIENT_LINKS)

    def warm_up(self) -> None:
        """Checks that the programs send, and that the watch sees it."""
        until, kinds = time.time() + 20 * WARM_UP_S, set()
        while len(kinds) < KINDS_SENT and time.time() < until:
            time.sleep(WARM_UP_S)
            kinds |= {self.judge.foreign(seen) for seen in self.watch.take() if seen.where in ("l1", "l2", "lan0")}
        if len(kinds) < KINDS_SENT:
            raise SystemExit(f"leaks: only these packets leave the open client: {sorted(kinds)}")

    # ---- What is expected.

    @property
    def is_running(self) -> bool:
        return self.tunnel is not None and self.tunnel.poll() is None

    @property
    def is_closed(self) -> bool:
        return self.judge.closed.now

    def differs(self, what: str) -> None:
        self.found.add("differs", what, time.time())

    def launch(self, *words: str | Path, switch: bool = True) -> subprocess.Popen:
        """Starts the tunnel with these options, and waits until the client is closed if it should be."""
        self.judge.looking_up.begin(time.time())
        if switch and not self.is_closed:
            self.until_resolved()
        process = self.command("client", "up", NAME, *words, *(["--kill-switch"] if switch else []))
        if switch and not self.is_closed:
            self.until_closed(process)
        return process

    def until_resolved(self) -> None:
        """Waits for routers that have not answered yet: the kernel sends what it has queued for them later."""
        until = time.time() + CLOSES_S
        while "INCOMPLETE" in self.client.run("ip", "neighbour").stdout and time.time() < until:
            time.sleep(0.02)

    def until_closed(self, process: subprocess.Popen) -> None:
        """Waits until the table of the switch is there. From then on nothing may leave."""
        until = time.time() + CLOSES_S
        while TABLE not in self.client.run("nft", "list", "tables").stdout.split():
            if time.time() > until:
                self.differs(f"the client is not closed after {CLOSES_S:g} s (status of the command: {process.poll()})")
                break
            time.sleep(0.005)
        self.judge.closed.begin(time.time() + IN_FLIGHT_S)

    def until_caught(self, process: subprocess.Popen) -> None:
        """Waits until a process handles SIGTERM: earlier, the signal is no orderly end."""
        until = time.time() + CATCHES_S
        while process.poll() is None and time.time() < until:
            status = Path(f"/proc/{process.pid}/status").read_text()
            caught = int(status.split("SigCgt:")[1].split()[0], 16)
            if caught >> (signal.SIGTERM - 1) & 1:
                return
            time.sleep(0.01)

    def ended(self) -> None:
        """The tunnel has ended, in any way."""
        self.tunnel, self.may_end = None, False
        self.judge.looking_up.end(time.time() + IN_FLIGHT_S)
        self.judge.shared.end(time.time())

    def opens(self) -> None:
        """From now on packets may leave, unless the client is held closed."""
        if not self.held:
            self.judge.closed.end(time.time())

    def check_client(self) -> None:
        """The client has to be as it was before the first tunnel."""

        def found() -> list[str]:
            now = names_file()
            names = [f"resolv.conf: {self.names} -> {now}"] if now != self.names else []
            return differences(self.before, state_of(self.client)) + names

        self.check_same("client", found)

    def check_hub(self) -> None:
        """The same of the hub."""
        self.check_same("hub", lambda: differences(self.hub_before, state_of(self.world.hub)))

    def check_same(self, name: str, find) -> None:
        until = time.time() + SAME_S
        while (found := find()) and time.time() < until:
            time.sleep(0.05)
        for line in found:
            self.differs(f"{name}: {line}")

    # ---- The verdict.

    def verdict(self, name: str, text: str, began: float) -> None:
        """Judges what has happened since the last verdict, and prints it if something was found."""
        for seen in self.watch.take():
            if problem := self.judge.problem(seen):
                self.found.add(*problem, seen.at, length=seen.length)
        letters = (self.folder / "received").read_text().split()
        for letter in letters[self.received :]:
            self.found.add("forwarded", f"a datagram of {letter} to the client in the tunnel", time.time())
        self.received = len(letters)
        counts = " ".join(f"{kind} {self.found.total(kind)}" for kind in ("outside", "forwarded", "differs"))
        state = f"{'closed' if self.is_closed else 'open'}{', held' if self.held else ''}{', running' if self.is_running else ''}"
        lines = [f"{began - self.began:6.1f} s  step {self.steps}: {name}: {text} ({state}): {counts}"]
        lines += [f"    {line}" for line in self.found.lines(began)]
        more = [f"    and {len(lines) - SHOWN} kinds more"] if len(lines) > SHOWN else []
        if self.verbose or len(lines) > 1:
            print("\n".join(lines[:SHOWN] + more), flush=True)
        self.record += lines
        self.total.include(self.found)
        self.found = Findings()

    def summary(self, seed: int) -> str:
        counts = [self.total.total(kind) for kind in ("outside", "forwarded", "differs")]
        lost = f"; the watch has missed {self.watch.lost} frames" if self.watch.lost else ""
        return (
            f"{self.steps} steps, seed {seed}: {counts[0]} packets outside, {counts[1]} forwarded, {counts[2]} differences "
            f"(connected after {self.connected} of {self.starts} starts{lost})"
        )

    def passed(self) -> bool:
        return not self.total.all and (self.connected > 0 or self.starts == 0)
