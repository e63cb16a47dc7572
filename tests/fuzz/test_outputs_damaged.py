"""What other programs printed, damaged: refused by line, or read as windows that can be judged."""

import gzip
import json
from typing import Any

import pytest
from hypothesis import strategies as st
from tests.fuzz.damage import spoiled
from tests.fuzz.explore import bounded, explore, holds
from tests.fuzz.tables import require_sound
from tests.labs.outputs.printed import FILES, HELD, OTHERS, SLOWEST, STALLED, hlog, warp

from cliffwatch.base.errors import Code, Problem
from cliffwatch.labs.outputs.formats import read_output
from cliffwatch.labs.outputs.names import OutputFormat

#: So much of a file has every kind of line.
_LINES = 400


def _beginning(name: str) -> bytes:
    content = (FILES / name).read_bytes()
    content = gzip.decompress(content) if name.endswith(".gz") else content
    return b"\n".join(content.splitlines()[:_LINES])


def _short_report() -> bytes:
    """A report of latte with its first samples, as a whole document."""
    document = json.loads(gzip.decompress((FILES / "latte.json.gz").read_bytes()))
    result = document["result"]
    result["log"] = result["log"][:20]
    result["cycle_count"] = sum(each["cycle_count"] for each in result["log"])
    return json.dumps(document, indent=1).encode()


CONTENTS = {
    **{name: (format_, _beginning(name)) for name, format_ in STALLED.items()},
    **{name: (format_, _beginning(name)) for name, (format_, _, _) in SLOWEST.items()},
    **{name: (format_, _beginning(name)) for name, (format_, _) in HELD.items()},
    **{name: (format_, _beginning(name)) for name, format_ in OTHERS.items()},
    "hlog": (OutputFormat.HLOG, "\n".join(hlog([5_000_000, 4_000_000, 3_000_000], 1e6, "Tag=a,")).encode()),
    "latte": (OutputFormat.LATTE, _short_report()),
    "warp": (OutputFormat.WARP, "\n".join(warp(300)).encode()),
    "omb": (
        OutputFormat.OMB,
        b'{"publishRate": [5, 6.5, 0], "publishLatency99pct": [1.5, 2, 0], "sampleRateMillis": 1000}',
    ),
}


@st.composite
def damaged(draw: Any) -> tuple[OutputFormat, bytes]:
    format_, content = CONTENTS[draw(st.sampled_from(sorted(CONTENTS)))]
    return format_, draw(spoiled(st.just(content)))


@holds(examples=200, content=damaged())
def test_an_output_is_sound_or_refused_by_line(content: tuple[OutputFormat, bytes]) -> None:
    format_, text = content
    with bounded():
        try:
            output = read_output(text.decode("utf-8", "replace").splitlines(), "t.txt", format_)
        except Problem as problem:
            assert problem.code is Code.BAD_REQUEST
            assert problem.faults
            return
        require_sound(output.table)


@pytest.mark.real(why="damage at random")
def test_outputs_at_random() -> None:
    explore(test_an_output_is_sound_or_refused_by_line)
