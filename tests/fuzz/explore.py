"""Properties of readers: a few examples, always the same, in `make test`; at random in `make test-real`.

@holds(text=restructured(...))
def test_what_always_holds(text: str) -> None: ...

@pytest.mark.real(why="…")
def test_documents_at_random() -> None:
    explore(test_what_always_holds, …)
"""

import functools
import resource
import secrets
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, Phase, given, note, seed, settings
from hypothesis import strategies as st
from hypothesis.database import ExampleDatabase
from hypothesis.errors import HypothesisWarning

Property = Callable[..., None]
#: Of one example, whatever it is: readers stop at their bounds and do not allocate what a document says.
CPU_SECONDS, GROWN_MIB = 10.0, 512
SECONDS = 20
#: Characters of a value that are printed where it fails.
_SHOWN = 4000

_KNOWN: dict[Property, tuple[Property, int, dict[str, st.SearchStrategy[Any]]]] = {}


def holds(examples: int = 25, **strategies: st.SearchStrategy[Any]) -> Callable[[Property], Property]:
    """The function as a test of so many examples, which are the same each time."""

    def decorate(check: Property) -> Property:
        few = settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.explicit, Phase.generate, Phase.shrink),
        )
        test: Property = few(given(**strategies)(_noted(check)))
        _KNOWN[test] = (check, examples, strategies)
        return test

    return decorate


def explore(*properties: Property) -> None:
    """Each of them in turn, with new seeds, for `SECONDS`. A failure says its seed."""
    until = time.monotonic() + SECONDS
    # Where HYPOTHESIS_STORAGE_DIRECTORY says.
    database = settings.get_profile("default").database
    while time.monotonic() < until:
        for one in properties:
            _once(one, secrets.randbits(64), database)


def _once(one: Property, number: int, database: ExampleDatabase | None) -> None:
    check, examples, strategies = _KNOWN[one]
    many = settings(
        max_examples=examples,
        derandomize=False,
        database=database,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    try:
        with warnings.catch_warnings():
            # As an error, it would hide what failed.
            warnings.filterwarnings("ignore", "Generating overly large repr", HypothesisWarning)
            seed(number)(many(given(**strategies)(_noted(check))))()
    except BaseException as error:
        error.add_note(f"{check.__name__} failed with the seed {number}")
        raise


def _noted(check: Property) -> Property:
    """The same, and what it was given is printed where it fails: values that strategies compose are not otherwise."""

    @functools.wraps(check)
    def noted(**values: Any) -> None:
        for name, value in values.items():
            note(f"{name} = {repr(value)[:_SHOWN]}")
        check(**values)

    return noted


@contextmanager
def bounded(cpu_seconds: float = CPU_SECONDS, grown_mib: int = GROWN_MIB) -> Iterator[None]:
    """What is done here takes no more of the processor and lets the process grow by no more."""
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.thread_time()
    yield
    took = time.thread_time() - began
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    assert took < cpu_seconds, f"it took {took:.1f} s of the processor"
    assert grown < grown_mib, f"it took {grown} MiB of memory"
