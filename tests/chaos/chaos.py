#!/usr/bin/env python3
"""Random faults, drawn from a seed, on two hosts and the links between them while files, connections and messages flow.

    make chaos                       ten minutes of episodes
    CHAOS_SECONDS=60 make chaos      one
    make chaos SEED=7                the episode with this seed

Needs root (network namespaces, TUN devices, a tmpfs); otherwise it says so and ends. Everything runs in separate namespaces
that end with it. The schedule and the logs of a failed episode are kept in out/chaos-SEED/.
"""

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

import checks
from checks import Finding
from episode import SETTLE_S, WARM_UP_S, Episode, Programs
from faults import KINDS
from services import until_memory_settles

ROOT = Path(__file__).resolve().parents[2]
MARK = "ROPEWALK_CHAOS"
GONE_S = 5.0
TERMINAL = sys.stderr.isatty()


def show(text: str) -> None:
    """The progress line, on a terminal."""
    if TERMINAL:
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


class Run:
    """One episode from its beginning to its verdict."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self.threads: list[threading.Thread] = []
        self.trouble: list[str] = []
        self.shown = 0.0
        self.doing = "warming up"

    def progress(self) -> None:
        """Once a second."""
        episode, now = self.episode, time.time()
        for service in episode.services.values():
            service.watch()
        if now - self.shown < 1.0:
            return
        self.shown = now
        memory = {name: (episode.services[name].memory() or 0) >> 20 for name in checks.MEASURED}
        show(
            f"seed {episode.seed}  {now - episode.began:5.1f} s  {self.doing}  {episode.files.done} files  "
            f"{self.connections()} connections  {self.messages()} messages  MiB: {memory}"
        )

    def connections(self) -> int:
        return checks.counted(self.episode.services["traffic"].output, "outcome", "whole")

    def messages(self) -> int:
        output = self.episode.services["messages"].output
        counts = (line["echoed"] for line in checks.lines(output) if line["event"] == "count")
        return sum(counts)

    def wait(self, until: float) -> None:
        while (left := until - time.time()) > 0:
            self.progress()
            time.sleep(min(left, 0.1))

    def inflict(self, fault) -> None:
        def act() -> None:
            try:
                self.episode.inflict(fault)
            except Exception:  # noqa: BLE001  (reported in the verdict)
                self.trouble.append(f"{fault.shown()}: {traceback.format_exc()}")

        thread = threading.Thread(target=act, daemon=True)
        thread.start()
        self.threads.append(thread)

    def faults(self) -> float:
        """Runs the whole schedule; returns when the last fault has ended."""
        zero = time.time()
        for fault in self.episode.faults:
            self.wait(zero + fault.at)
            self.doing = fault.shown()
            self.inflict(fault)
        while any(thread.is_alive() for thread in self.threads):
            self.progress()
            time.sleep(0.05)
        return time.time()

    def recover(self, until: float) -> list[str]:
        """Waits until each workload has made progress, then lets all of them finish. Returns the problems."""
        self.doing = "recovering"
        before = {"files": self.episode.files.done, "connections": self.connections(), "messages": self.messages()}
        late = set(before)
        while late and time.time() < until:
            self.progress()
            time.sleep(0.2)
            now = {"files": self.episode.files.done, "connections": self.connections(), "messages": self.messages()}
            # Two files: the one in transit may have been almost complete.
            late = {name for name in before if now[name] < before[name] + 2}
        problems = [f"no {name} in time after the last fault" for name in sorted(late)]
        self.doing = "finishing"
        self.episode.files.ending.set()
        enders = [self.episode.services[name] for name in ("traffic", "messages")]
        problems += [said for said in (service.finish(until) for service in enders) if said]
        self.episode.files.thread.join(max(0.0, until - time.time()))
        if self.episode.files.thread.is_alive():
            problems.append("a file is still on its way")
            self.episode.files.give_up()
        return problems

    def judge(self) -> list[Finding]:
        episode = self.episode
        episode.start()
        self.wait(episode.began + WARM_UP_S)
        before = {name: episode.services[name].memory() or 0 for name in checks.MEASURED}
        quiet = self.faults()
        time_left = 5.0 if episode.defects else SETTLE_S
        late = self.recover(quiet + time_left)
        limits = {name: before[name] + checks.MEMORY_ALLOWANCE for name in checks.MEASURED}
        services = [episode.services[name] for name in checks.MEASURED]
        after = until_memory_settles(services, limits, quiet + SETTLE_S, self.progress)
        self.took = time.time() - quiet
        self.grown = {name: round((after[name] - before[name]) / 1e6, 1) for name in after}
        rest = [episode.services[name] for name in ("near", "exit", "echo", "recv", "origin")]
        ended = [said for said in (service.finish(0) for service in rest) if said]
        findings = [Finding("the harness did what the schedule says", self.trouble)]
        findings.append(Finding(checks.IN_TIME, late))
        findings += checks.check_files(episode)
        findings += checks.check_connections(episode)
        findings += checks.check_messages(episode)
        findings += [checks.check_programs(episode, ended), checks.check_memory(before, after)]
        return findings


def others() -> list[str]:
    """Processes in this PID namespace that should have ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if "State:\tZ" not in (entry / "status").read_text():
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
    return found


def keep(folder: Path, seed: int, findings: list[Finding]) -> Path:
    """Copies the schedule and logs of a failure to a permanent place."""
    kept = ROOT / "out" / f"chaos-{seed}"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for pattern in ("*.log", "*.out", "*.json"):
        for file in folder.glob(pattern):
            shutil.copy(file, kept)
    text = [f"{finding.name}: {problem}" for finding in findings for problem in finding.problems]
    (kept / "verdict.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
    return kept


def one_episode(arguments: argparse.Namespace, seed: int, kinds: Counter[str]) -> list[Finding]:
    folder = arguments.scratch / str(seed)
    folder.mkdir()
    programs = Programs(arguments.binary, arguments.messages)
    faults = 0.0 if arguments.defects else arguments.faults
    episode = Episode(programs, seed, folder, faults, arguments.only, arguments.defects)
    run = Run(episode)
    try:
        findings = run.judge()
    finally:
        counts = episode.links.counts()
        episode.save()
        for service in episode.services.values():
            service.kill()
        episode.leave()
    findings.append(Finding("no process stays", others()))
    kinds.update(fault.kind for _, _, fault in episode.timeline.entries)
    kinds.update({f"packets {name}": count for name, count in counts.items()})
    show("")
    if arguments.defects:
        return defects_found(findings)
    failed = [finding for finding in findings if finding.problems]
    print(
        f"seed {seed}: {'FAILED' if failed else 'passed'}; {len(episode.faults)} faults, {episode.files.done} files "
        f"({episode.files.bytes / 1e6:.1f} MB), {run.connections()} connections, {run.messages()} messages; all over after "
        f"{run.took:.1f} s; memory grown by, MB: {run.grown}",
        flush=True,
    )
    for finding in failed:
        for problem in finding.problems[:5]:
            print(f"  {finding.name}: {problem}", flush=True)
    if failed:
        print(f"  kept in {keep(folder, seed, findings)}; again: make chaos SEED={seed}", flush=True)
    return findings


def defects_found(findings: list[Finding]) -> list[Finding]:
    """For an episode with deliberately defective programs: whether the expected checks failed."""
    verdicts = []
    for finding in findings:
        expected = finding.name in checks.OF_CONTENT
        # If every connection is wrong, none counts as done, so the check of progress fails as expected.
        if finding.name == checks.IN_TIME:
            continue
        if expected == bool(finding.problems):
            verdicts.append(Finding(finding.name, []))
        else:
            verdicts.append(Finding(finding.name, [f"the defect was not found: {finding.problems}"]))
        print(f"{finding.name}: {'found' if finding.problems else 'nothing'}: {finding.problems[:1]}", flush=True)
    return verdicts


def inside(arguments: argparse.Namespace) -> None:
    """Runs all episodes, in namespaces that end with this process."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    began, tally, kinds = time.time(), Counter(), Counter()
    seed, longest = arguments.seed, 0.0
    while True:
        at = time.time()
        findings = one_episode(arguments, seed, kinds)
        tally["failed"] += sum(bool(finding.problems) for finding in findings)
        tally["passed"] += sum(not finding.problems for finding in findings)
        longest = max(longest, time.time() - at)
        seed += 1
        if arguments.one or time.time() - began + longest > arguments.seconds:
            break
    for kind in KINDS:
        print(f"{kind.name:12} {kinds[kind.name]:5} times")
    packets = {name[8:]: count for name, count in kinds.items() if name.startswith("packets ")}
    print("packets:", ", ".join(f"{count} {name}" for name, count in packets.items()), flush=True)
    (arguments.scratch / "tally.json").write_text(json.dumps(tally), encoding="utf-8")


def missing() -> str:
    """Why this machine cannot run episodes; empty if it can."""
    if os.geteuid() != 0:
        return "it needs root: network namespaces, TUN devices and a tmpfs"
    if not Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun"
    for tool in ("ip", "unshare", "nsenter"):
        if not shutil.which(tool):
            return f"`{tool}` is missing (packages iproute2 and util-linux)"
    tried = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else f"no namespaces: {tried.stderr.decode().strip()}"


def left_behind(mark: str, scratch: Path) -> list[str]:
    """Processes and mounts of this run that still exist."""
    found = []
    for environment in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in environment.read_bytes() and int(environment.parent.name) != os.getpid():
                found.append(f"process {environment.parent.name}")
        except OSError:
            continue
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(scratch) in line]
    return found


def outside(arguments: argparse.Namespace) -> int:
    """Runs the episodes in namespaces, and checks for leftovers."""
    if why := missing():
        print(f"chaos: left out: {why}")
        return 0
    mark = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="ropewalk-chaos-") as name:
        scratch = Path(name)
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, __file__]
        words += [*sys.argv[1:], "--seed", str(arguments.seed), "--scratch", name]
        words += ["--one"] if arguments.one or arguments.defects else []
        status = subprocess.run(words, env=os.environ | {MARK: mark}, check=False).returncode
        tally = Counter({"failed": 1})
        if status == 0 and (scratch / "tally.json").exists():
            tally = Counter(json.loads((scratch / "tally.json").read_text()))
        else:
            print(f"chaos: the episodes ended with status {status}")
        # Killed programs need a moment to end.
        until = time.time() + GONE_S
        while (left := left_behind(mark, scratch)) and time.time() < until:
            time.sleep(0.1)
        for what in left:
            print(f"left behind: {what}")
        tally["failed" if left else "passed"] += 1
    print(f"{tally['passed']} passed, {tally['failed']} failed")
    return 1 if tally["failed"] else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=lambda text: Path(text).resolve(), required=True, help="`ropewalk`")
    parser.add_argument("--messages", type=lambda text: Path(text).resolve(), required=True, help="`ropewalk-messages`")
    parser.add_argument("--seconds", type=float, default=600.0, help="no episode is begun that would end later (600)")
    parser.add_argument("--faults", type=float, default=30.0, help="seconds of faults in an episode (30)")
    parser.add_argument("--seed", type=int, help="of the first episode")
    parser.add_argument("--only", nargs="+", choices=[kind.name for kind in KINDS], help="these kinds of faults alone")
    parser.add_argument("--one", action="store_true", help="one episode")
    parser.add_argument("--defects", action="store_true", help="no faults, but content that is changed on purpose: are they found?")
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = secrets.randbelow(1_000_000)
    if arguments.scratch:
        inside(arguments)
        return 0
    return outside(arguments)


if __name__ == "__main__":
    sys.exit(main())
