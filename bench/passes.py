"""The smallest trouble that keeps a soak from passing, by its size and by the length of each rise.

`python -m bench.passes` prints the table that docs/detection.md has: of 24 hours of which 20 come after the first four,
the smallest share of time that is found, offline and online, in each of the seeds.
"""

import argparse

from testkit.soaks.trouble import HOUR, LEARNED_HOURS, WINDOW_SECONDS, Kind, Plan, Trouble, table_of, verdict_on

from cliffwatch.base.units import format_length
from cliffwatch.model.run_state import VerdictName

HOURS = 24
SEEDS = (1, 2)
SIZES = (1.5, 2.0, 3.0, 10.0)
LENGTHS = (1, 3, 9, 18, 60, 180)
SHARES = (0.01, 0.02, 0.03, 0.05, 0.1, 0.25)
MODES = ("offline", "online")


def trouble(kind: Kind, size: float, windows: int, share: float, seed: int) -> Trouble:
    """Rises of `windows` each for a share of the time, evenly apart, from somewhere in the fifth hour on."""
    room = (HOURS - LEARNED_HOURS - 1) * HOUR
    times = max(1, round(share * (HOURS - LEARNED_HOURS) * HOUR / windows))
    return Trouble(kind, LEARNED_HOURS * HOUR + 17 * seed, windows, size, times, max(windows + 1, room // times))


def is_found(kind: Kind, size: float, windows: int, share: float, mode: str) -> bool:
    """Whether a share of trouble does not pass, in any of the seeds."""
    plans = (Plan(seed, HOURS, troubles=(trouble(kind, size, windows, share, seed),)) for seed in SEEDS)
    return all(verdict_on(table_of(plan), mode).name is not VerdictName.PASS for plan in plans)


def smallest(kind: Kind, size: float, windows: int, mode: str) -> str:
    """Text of the smallest share from which on all are found."""
    found = ""
    for share in reversed(SHARES):
        if not is_found(kind, size, windows, share, mode):
            break
        found = f"{share:.0%}"
    return found or "none"


def main() -> None:
    argparse.ArgumentParser(prog="python -m bench.passes", description=__doc__).parse_args()
    lengths = [format_length(windows * WINDOW_SECONDS) for windows in LENGTHS]
    for kind in (Kind.SLOWER, Kind.CLIENT):
        print(f"{'client and device' if kind is Kind.SLOWER else 'client alone'}, offline / online", flush=True)
        print("| | " + " | ".join(lengths) + " |\n|---" * 1 + "|---" * len(lengths) + "|", flush=True)
        for size in SIZES:
            cells = (
                " / ".join(smallest(kind, size, windows, mode).replace("%", " %") for mode in MODES)
                for windows in LENGTHS
            )
            print(f"| ×{size:g} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
