"""The kinds of faults, and schedules of them that are drawn from a seed."""

import random
from dataclasses import asdict, dataclass
from typing import Any

SERVICES = ("recv", "exit", "near", "echo", "messages")
"""Programs that run for the whole episode, by the names under which they are killed and paused."""
KILLED = (*SERVICES, "send")


@dataclass(frozen=True)
class Fault:
    """A fault, `at` seconds after the faults begin, for `seconds`."""

    at: float
    kind: str
    target: str
    seconds: float
    share: float = 0.0
    """Share of the packets that it affects, or the variant of the fault."""

    def shown(self) -> str:
        return f"{self.kind} {self.target} for {self.seconds:.2f} s"

    def document(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Kind:
    """How long a fault of this kind lasts, and its possible targets."""

    name: str
    seconds: tuple[float, float]
    on_links: bool
    targets: tuple[str, ...] = ()
    together: bool = False
    """May affect all links at once."""
    shares: tuple[float, float] = (0.0, 0.0)


KINDS = (
    Kind("cut", (0.3, 5.0), on_links=True, together=True),
    Kind("flap", (1.0, 4.0), on_links=True),
    Kind("device-down", (0.3, 3.0), on_links=True),
    Kind("rebind", (0.0, 0.0), on_links=True, shares=(0.0, 1.0), together=True),
    Kind("readdress", (0.0, 0.5), on_links=True),
    Kind("reorder", (1.0, 5.0), on_links=True, shares=(0.05, 0.5)),
    Kind("duplicate", (1.0, 5.0), on_links=True, shares=(0.05, 0.5)),
    Kind("corrupt", (1.0, 5.0), on_links=True, shares=(0.01, 0.1)),
    Kind("pause", (0.5, 0.5), on_links=False, targets=SERVICES),
    Kind("kill", (0.1, 1.5), on_links=False, targets=KILLED),
    Kind("disk-full", (0.5, 3.0), on_links=False, targets=("inbox",)),
)
MEAN_GAP_S = 1.0


def draw(seed: int, seconds: float, links: int, allowed: list[str] | None = None) -> list[Fault]:
    """A schedule of faults, the same for the same arguments. Each kind comes at least once if there is time."""
    source = random.Random(f"{seed}/schedule")
    kinds = [kind for kind in KINDS if allowed is None or kind.name in allowed]
    waiting = source.sample(kinds, len(kinds))
    faults = []
    at = 0.0
    while kinds and at < seconds:
        kind = waiting.pop() if waiting else source.choice(kinds)
        targets = [f"link{n}" for n in range(1, links + 1)] if kind.on_links else list(kind.targets)
        targets += ["all"] if kind.together else []
        target = source.choice(targets)
        lasts, share = source.uniform(*kind.seconds), source.uniform(*kind.shares)
        faults.append(Fault(round(at, 3), kind.name, target, round(lasts, 3), round(share, 3)))
        at += source.expovariate(1 / MEAN_GAP_S)
    return faults

