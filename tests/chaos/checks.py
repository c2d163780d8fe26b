"""The conditions after an episode, and reasons when they do not hold."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from episode import NOTICE_S, Episode
from files import content_of

RECONNECT_S = 20.0
"""How long after the kill of an end a proxied connection may fail: its path is being set up again."""
MEMORY_ALLOWANCE = 32 << 20
"""Bytes by which a program may be larger after the episode than after its first seconds: the allocator keeps memory of
buffers that faults filled."""
IN_TIME = "everything finishes within a minute after the last fault"
FILES = "files arrive as they were"
CONNECTIONS = "connections carry the bytes that were sent"
MESSAGES = "messages come back once, unchanged and in order"
OF_CONTENT = (FILES, CONNECTIONS, MESSAGES)
MEASURED = ("recv", "exit", "near", "echo")


@dataclass(frozen=True)
class Finding:
    """One check, and its findings."""

    name: str
    problems: list[str]


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """The JSON lines of a program; the last one may have been cut by a kill."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def counted(path: Path, key: str, value: str) -> int:
    return sum(1 for line in lines(path) if line.get(key) == value) if path.exists() else 0


def check_files(episode: Episode) -> Iterator[Finding]:
    files = episode.files
    problems = list(files.wrong)
    problems += [] if files.done else ["no file arrived at all"]
    yield Finding(FILES, problems)
    excuses = {("kill", "recv"), ("kill", "send"), ("disk-full", "inbox")}
    unexplained = [
        f"status {one.status} after {one.ended - one.began:.1f} s, {one.ended - episode.began:.1f} s into the episode: {one.said.strip()}"
        for one in files.failed
        if not episode.timeline.within(excuses, one.began - NOTICE_S, one.ended)
    ]
    yield Finding("`send` fails only after a kill or with a full disk", unexplained)
    yield Finding("nothing else is in the inbox", sorted(content_of(episode.inbox))[:10])


def check_connections(episode: Episode) -> Iterator[Finding]:
    all_lines = [*lines(episode.services["traffic"].output), *lines(episode.services["origin"].output)]
    wrong = [f"{line['side']}: {line['why']}" for line in all_lines if line["outcome"] == "wrong"]
    whole = sum(line["outcome"] == "whole" for line in all_lines)
    yield Finding(CONNECTIONS, wrong if whole else [*wrong, "none succeeded"])
    excuses = {("kill", "exit"), ("kill", "near")}
    broken = [
        f"{line['outcome']} ({line['why']}) from {line['began'] - episode.began:.1f} to {line['ended'] - episode.began:.1f} s"
        for line in all_lines
        if line["outcome"] in ("broken", "hung")
        and not (
            line["outcome"] == "broken"
            and episode.timeline.within(excuses, line["began"] - RECONNECT_S, line["ended"])
        )
    ]
    yield Finding("connections break only when an end is killed", broken)


def check_messages(episode: Episode) -> Iterator[Finding]:
    all_lines = list(lines(episode.services["messages"].output))
    wrong = [line["why"] for line in all_lines if line["event"] == "wrong"]
    some = any(line["event"] == "count" and line["echoed"] for line in all_lines)
    yield Finding(MESSAGES, wrong if some else [*wrong, "none came back"])
    lost = [
        f"{line['event']} ({line['why']}) {line['ended'] - episode.began:.1f} s into the episode, {line['outstanding']} messages on their way"
        for line in all_lines
        if line["event"] in ("lost", "silent")
        and not episode.timeline.within({("kill", "echo")}, line["began"], line["ended"])
    ]
    yield Finding("associations end only when an end is killed", lost)


def check_programs(episode: Episode, ended: list[str]) -> Finding:
    problems = list(ended)
    for service in episode.services.values():
        problems += service.unexpected
    for log in sorted(episode.folder.glob("*.log")):
        text = log.read_text(encoding="utf-8", errors="replace")
        problems += [f"{log.name}: {line}" for line in text.splitlines() if "panicked at" in line]
        if "Traceback" in text:
            problems.append(f"{log.name}: a Python program failed")
    return Finding("no program panics or ends by itself", problems)


def check_memory(before: dict[str, int], after: dict[str, int]) -> Finding:
    problems = [
        f"{name}: {before[name] / 1e6:.1f} MB before, {after[name] / 1e6:.1f} MB after"
        for name in MEASURED
        if after[name] > before[name] + MEMORY_ALLOWANCE
    ]
    return Finding("memory returns to what it was", problems)
