"""The steps: what is done to the client, to the hub and to their tunnel. Each returns what it has drawn and seen."""

import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass

from machines import L1, L2, LAN, NAME_SERVERS, NO_NAME, RESOLV_CONF, names_file
from trial import ACTS_S, DEVICE, IN_FLIGHT_S, NAME, TABLE, Trial

CONNECTS_S = 15.0
"""How long a tunnel gets to carry its first packet. The lookup of its hub may need several attempts."""
LOOKS_UP_S = 1.5
SUSPENDED_S = 2.0


# ---- Tunnels begin and end.


def start(trial: Trial) -> str:
    is_wanted, is_patient = trial.random.random() < 0.85, trial.random.random() < 0.8
    switch = is_wanted or trial.is_closed and not trial.held
    words = list(trial.random.choice([[], [], ["--no-dns"], ["--dns-file", str(trial.folder / "names")]]))
    if trial.random.random() < 0.35:
        words += ["--share", "--from", "l1,l2", *trial.random.choice([[], ["--share-from", "lan0"]])]
        trial.judge.shared.begin(time.time())
    elif trial.random.random() < 0.5:
        words += ["--from", "l1,l2"]
    patience = CONNECTS_S if is_patient else trial.random.uniform(0.0, 1.0)
    began = time.time()
    trial.tunnel = trial.launch(*words, switch=switch)
    trial.starts += is_patient
    while trial.is_running and time.time() < began + patience:
        if trial.watch.carried > began + IN_FLIGHT_S:
            trial.connected += is_patient
            break
        time.sleep(0.02)
    return f"{'with' if switch else 'without'} the switch {' '.join(words)} for {time.time() - began:.1f} s; {trial.traits}"


def failed(trial: Trial, process: subprocess.Popen, what: str) -> str:
    """A start that cannot succeed has to end, and the client stays closed."""
    status = trial.finished(process, what)
    trial.ended()
    if status == 0:
        trial.differs(f"{what} ended with status 0")
    time.sleep(ACTS_S)
    return f"status {status}"


def start_without_key(trial: Trial) -> str:
    return failed(trial, trial.launch("--key", "/nonexistent/key"), "a start without a key")


def with_full_disk(trial: Trial, act: Callable[[], str]) -> str:
    filler = trial.state / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    try:
        return act()
    finally:
        filler.unlink()


def start_on_full_disk(trial: Trial) -> str:
    return with_full_disk(trial, lambda: failed(trial, trial.launch(), "a start on a full disk"))


def end_on_full_disk(trial: Trial) -> str:
    return with_full_disk(trial, lambda: end(trial))


def start_without_name(trial: Trial) -> str:
    trial.tunnel = trial.launch("--to", NO_NAME)
    # It tries for a minute.
    trial.may_end = True
    time.sleep(LOOKS_UP_S)
    return "tries on"


def start_in_silence(trial: Trial) -> str:
    trial.name_servers("silent")
    trial.tunnel = trial.launch()
    time.sleep(LOOKS_UP_S)
    trial.name_servers("answer")
    return "tries on"


def second_start(trial: Trial) -> str:
    switch = ["--kill-switch"] if trial.random.random() < 0.7 else []
    status = trial.finished(trial.command("second", "up", NAME, *switch), "a second start")
    if status == 0:
        trial.differs("a second start of a running tunnel ended with status 0")
    return f"status {status}"


def end(trial: Trial) -> str:
    number = trial.random.choice([signal.SIGTERM, signal.SIGINT])
    assert trial.tunnel
    trial.until_caught(trial.tunnel)
    trial.opens()
    trial.tunnel.send_signal(number)
    status = trial.finished(trial.tunnel, "the tunnel")
    trial.ended()
    if not trial.is_closed:
        trial.check_client()
    return f"{number.name}, status {status}"


def crash(trial: Trial) -> str:
    number = trial.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGABRT])
    assert trial.tunnel
    trial.tunnel.send_signal(number)
    trial.finished(trial.tunnel, "the tunnel")
    trial.ended()
    return number.name


def undo(trial: Trial) -> str:
    is_running = trial.is_running
    if not is_running:
        trial.held = False
        trial.opens()
    status = trial.finished(trial.command("undo", "undo", NAME), "`tunnel undo`")
    if is_running == (status == 0):
        trial.differs(f"`tunnel undo` ended with status {status}, and the tunnel {'runs' if is_running else 'had ended'}")
    if not is_running:
        trial.check_client()
    return f"status {status}"


def close_only(trial: Trial) -> str:
    status = trial.finished(trial.launch("--only-close"), "--only-close")
    trial.ended()
    trial.held = True
    if status != 0:
        trial.differs(f"--only-close ended with status {status}")
    follow = trial.random.choice([["start", "end"], ["start", "crash", "start", "end"], ["start_without_key"], []])
    trial.plan.extendleft(reversed([*follow, "undo"]))
    return f"status {status}"


def reboot(trial: Trial) -> str:
    if trial.tunnel:
        trial.tunnel.kill()
        trial.tunnel.wait()
    trial.ended()
    trial.held = False
    trial.judge.closed.end(time.time())
    trial.plan.clear()
    trial.boot()
    then = trial.random.choice(["close_only", "undo", "start"])
    if then == "close_only":
        # Before the links are there.
        trial.world.unplug()
        close_only(trial)
        trial.plug()
    else:
        trial.plan.append(then)
    return f"then {then}; {trial.traits}"


# ---- Disturbances.


def hub_dies(trial: Trial) -> str:
    pause = trial.random.uniform(0.0, 1.5)
    trial.kill("hub")
    time.sleep(pause)
    trial.start_hub()
    return f"for {pause:.1f} s"


def some_links(source: random.Random) -> list[str]:
    return [link.device for link in source.choice([[L1], [L2], [L1, L2], [LAN]])]


def link_down(trial: Trial) -> str:
    devices, pause = some_links(trial.random), trial.random.uniform(0.05, 1.0)
    trial.client.batch([f"link set {device} down" for device in devices])
    time.sleep(pause)
    trial.configure()
    return f"{' '.join(devices)} for {pause:.1f} s"


def flush_addresses(trial: Trial) -> str:
    devices, pause = some_links(trial.random), trial.random.uniform(0.0, 0.5)
    trial.client.batch([f"address flush dev {device}" for device in devices])
    time.sleep(pause)
    trial.configure()
    return f"{' '.join(devices)} for {pause:.1f} s"


def change_default(trial: Trial) -> str:
    """Routes that another program deletes, changes or adds, also more specific ones, as by DHCP (RFC 3442)."""
    kind, pause = trial.random.choice(["delete", "change", "add", "specific"]), trial.random.uniform(0.1, 0.8)
    lines, back = [], []
    for family, everything in enumerate(("0.0.0.0/0", "::/0")):
        first, second = (f"via {link.far_addresses[family]} dev {link.device} metric" for link in (L1, L2))
        if kind in ("delete", "change"):
            lines.append(f"route delete {everything} {first} 100")
        if kind == "change":
            lines.append(f"route add {everything} {second} 100")
            back.append(f"route delete {everything} {second} 100")
        networks = {"add": [everything], "specific": SPECIFIC[family]}.get(kind, [])
        lines += [f"route add {network} {second} 50" for network in networks]
        back += [f"route delete {network} {second} 50" for network in networks]
    trial.client.batch(lines)
    time.sleep(pause)
    trial.client.batch(back)
    trial.configure()
    return f"{kind} for {pause:.1f} s"


SPECIFIC = (["192.0.2.0/24", "128.0.0.0/2"], ["2001:db8:80::/64", "2000::/4"])
"""More specific than the routes into the tunnel."""


def flush_routes(trial: Trial) -> str:
    pause = trial.random.uniform(0.0, 0.5)
    for family in ("-4", "-6"):
        trial.client.run("ip", family, "route", "flush", "table", "main")
    time.sleep(pause)
    trial.configure()
    return f"for {pause:.1f} s"


def delete_device(trial: Trial) -> str:
    trial.may_end = True
    if trial.client.run("ip", "link", "delete", DEVICE).returncode != 0:
        return "there is none"
    assert trial.tunnel
    status = trial.finished(trial.tunnel, "a tunnel without its device")
    trial.ended()
    return f"status {status}"


def repeated(trial: Trial, act: Callable[[], object]) -> str:
    count = trial.random.randint(1, 5)
    for _ in range(count):
        act()
        time.sleep(trial.random.uniform(0.05, 0.3))
    return f"{count} times"


def flush_filter(trial: Trial) -> str:
    text = repeated(trial, lambda: trial.client.run("nft", "flush", "ruleset"))
    trial.add_own_rules()
    return text


def delete_table(trial: Trial) -> str:
    return repeated(trial, lambda: trial.client.run("nft", "delete", "table", "inet", TABLE))


def flush_rules(trial: Trial) -> str:
    def act() -> None:
        for family in ("-4", "-6"):
            trial.client.run("ip", family, "rule", "flush")
        for family, table, priority in (("-4", "main", "32766"), ("-4", "default", "32767"), ("-6", "main", "32766")):
            trial.client.run("ip", family, "rule", "add", "from", "all", "lookup", table, "priority", priority)

    return repeated(trial, act)


def silence(trial: Trial) -> str:
    trial.name_servers("silent")
    time.sleep(1.0)
    trial.name_servers("answer")
    return ""


def write_names(trial: Trial) -> str:
    """Another program writes /etc/resolv.conf, as DHCP clients do. Its text has to be there at the end."""
    new = RESOLV_CONF.with_name("resolv.dhcp")
    new.write_text(f"domain dhcp{trial.steps}.example.org\n" + "".join(f"nameserver {one}\n" for one in NAME_SERVERS))
    new.chmod(0o644)
    new.rename(RESOLV_CONF)
    trial.names = names_file()
    time.sleep(trial.random.uniform(0.0, 1.2))
    return ""


def suspend(trial: Trial) -> str:
    assert trial.tunnel
    trial.tunnel.send_signal(signal.SIGSTOP)
    time.sleep(SUSPENDED_S)
    trial.tunnel.send_signal(signal.SIGCONT)
    return ""


# ---- Which step comes next.


@dataclass(frozen=True)
class Step:
    """A kind of step. `needs`: whether the tunnel has to run, or must not."""

    act: Callable[[Trial], str]
    needs: bool | None
    weight: int = 2

    @property
    def name(self) -> str:
        return self.act.__name__


STEPS = (
    Step(start, False, 1),
    Step(start_without_key, False),
    Step(start_on_full_disk, False),
    Step(start_without_name, False),
    Step(start_in_silence, False),
    Step(second_start, True),
    Step(end, True, 3),
    Step(end_on_full_disk, True, 1),
    Step(crash, True, 4),
    Step(undo, None),
    Step(close_only, False),
    Step(reboot, None, 3),
    Step(hub_dies, None),
    Step(link_down, None),
    Step(flush_addresses, None),
    Step(change_default, None),
    Step(flush_routes, None),
    Step(delete_device, True),
    Step(flush_filter, True, 3),
    Step(delete_table, True),
    Step(flush_rules, None),
    Step(silence, None, 1),
    Step(write_names, None),
    Step(suspend, True),
)
BY_NAME = {step.name: step for step in STEPS}


class Draw:
    """Draws steps from the seed: first each kind once, then by weight. What a step needs comes before it."""

    def __init__(self, trial: Trial, only: list[str] | None) -> None:
        self.trial, self.only = trial, only
        self.waiting = trial.random.sample(STEPS, len(STEPS))

    def next(self) -> Step:
        trial = self.trial
        if not trial.plan and self.only:
            trial.plan.extend(self.only)
        if trial.plan:
            step = BY_NAME[trial.plan.popleft()]
        elif self.waiting:
            step = self.waiting.pop()
        else:
            step = trial.random.choices(STEPS, [step.weight for step in STEPS])[0]
        if step.needs in (None, trial.is_running):
            return step
        trial.plan.appendleft(step.name)
        return BY_NAME["start" if step.needs else trial.random.choice(["end", "crash"])]


def take_step(trial: Trial, step: Step) -> None:
    """Takes a step, and judges what has happened."""
    began = time.time()
    trial.steps += 1
    if trial.tunnel and not trial.is_running:
        if not trial.may_end:
            trial.differs(f"the tunnel ended by itself, with status {trial.tunnel.returncode}")
        trial.ended()
    text = step.act(trial)
    time.sleep(ACTS_S)
    trial.verdict(step.name, text, began)


def finish(trial: Trial) -> None:
    """Ends the tunnel and the hub in order: nothing of them may be left."""
    trial.plan.clear()
    if trial.is_running:
        take_step(trial, BY_NAME["end"])
    if trial.is_closed or trial.held:
        take_step(trial, BY_NAME["undo"])
    began = time.time()
    hub = trial.processes["hub"]
    trial.until_caught(hub)
    hub.terminate()
    trial.finished(hub, "the hub")
    trial.check_hub()
    trial.verdict("end of the hub", "", began)


# ---- Whether defects are found.


def open_on_purpose(trial: Trial) -> str:
    """Removes both locks of a client without a tunnel, and lets it forward."""
    trial.client.run("nft", "flush", "ruleset")
    flush_rules(trial)
    trial.client.set(**{f"ipv4/conf/{device}/forwarding": "1" for device in ("l1", "l2", "lan0")})
    time.sleep(1.0)
    trial.add_own_rules()
    return ""


def with_defects(trial: Trial) -> list[str]:
    """Opens the client on purpose. Returns the kinds of findings that are missing."""
    trial.judge.is_router = False
    for step in (BY_NAME["start"], BY_NAME["crash"], Step(open_on_purpose, None), BY_NAME["undo"]):
        take_step(trial, step)
    return [kind for kind in ("outside", "forwarded", "differs") if not trial.total.total(kind)]
