"""`cliffwatch drive what-if` with the real simulator."""

import json
import os
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from testkit.checkout import STATE
from testkit.waiting import wait_until

from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.main import app

ONE_BAND = ("--over-provisioning=7%", "--disorder=0.5,1", "--seeds=2", "--jobs=2")
PATIENCE_SECONDS = 60.0


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "cliffwatch.cli.main", "drive", "what-if", *arguments]


def environment() -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("CLIFFWATCH_")}
    return clean | {"CLIFFWATCH_STATE_DIRECTORY": str(STATE)}


def what_if(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command(*arguments), env=environment(), cwd="/", capture_output=True, text=True, check=False)


def rows(reported: dict[str, Any]) -> dict[tuple[str, Any], dict[str, Any]]:
    return {(row["parameter"], row["value"]): row for row in reported["rows"]}


def test_unpartitioned_space_or_trim_removes_the_cliff_reproducibly(simulator: Path, small: Path) -> None:
    asked = (str(small), *ONE_BAND, "--unpartitioned=0,30%", "--trim=off,on", "--output=json")
    first, second = what_if(*asked), what_if(*asked)
    assert first.returncode == 0, first.stderr
    reported = json.loads(first.stdout)
    found = rows(reported)
    assert found["unpartitioned", 0.0]["simulations_with_cliff"] == 4
    assert found["unpartitioned", 0.3]["simulations_with_cliff"] == 0
    assert found["trim", True]["simulations_with_cliff"] == 0
    assert found["trim", True]["write_amplification"]["highest"] < 1.01
    onset = found["unpartitioned", 0.0]["onset_seconds"]
    assert 60 <= onset["lowest"] <= onset["middle"] <= onset["highest"] < 300
    assert found["unpartitioned", 0.0]["write_amplification"]["lowest"] > 2
    assert len({one["write_amplification"] for one in reported["simulations"]}) > 4, "seeds and q make a difference"
    by_values = {json.dumps(one, sort_keys=True) for one in reported["simulations"]}
    assert by_values == {json.dumps(one, sort_keys=True) for one in json.loads(second.stdout)["simulations"]}


class Page(HTMLParser):
    """Elements, their attributes and the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_stands_alone_and_says_what_the_table_says(simulator: Path, small: Path, tmp_path: Path) -> None:
    output = tmp_path / "answer.html"
    done = what_if(str(small), *ONE_BAND, "--unpartitioned=0,30%", f"--to={output}")
    assert done.returncode == 0, done.stderr
    assert "8 simulations of the drive, 2 at a time: about" in done.stderr
    assert "over-provisioning" in done.stdout
    page = Page(output.read_text(encoding="utf-8"))
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "img", "iframe"}
    assert not [attributes for _, attributes in page.elements if {"src", "href"} & set(attributes)]
    ranges = [attributes for tag, attributes in page.elements if (tag, attributes.get("class")) == ("line", "range")]
    table_rows = [line for line in done.stdout.splitlines() if "/4" in line or "/2" in line]
    assert len(ranges) == len(table_rows)
    assert "Assumed, not measured; varied in every band" in page.text
    assert "30 %" in page.text
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".yaml"] == ["answer.html"]


def test_without_a_rate_or_timing_the_answer_is_write_amplification_alone(simulator: Path, tmp_path: Path) -> None:
    path = tmp_path / "uniform.yaml"
    path.write_text("workload: uniform\nblocks: 256\nfills: 3\n")
    done = what_if(str(path), "--seeds=1", "--to", str(tmp_path / "uniform.html"))
    assert done.returncode == 0, done.stderr
    assert "CLIFFS" not in done.stdout
    assert "WRITE AMPLIFICATION" in done.stdout
    reported = json.loads(what_if(str(path), "--seeds=1", "--output=json").stdout)
    assert {row["onset_seconds"] for row in reported["rows"]} == {None}


def test_an_infeasible_value_is_left_out_by_default_and_refused_if_requested(simulator: Path, small: Path) -> None:
    few = ("--set=segment-size=256MiB", "--over-provisioning=7%", "--disorder=1", "--seeds=1")
    done = what_if(str(small), *few, "--output=json")
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    assert [(one["parameter"], one["value"]) for one in reported["left_out"]] == [("streams", 32)]
    assert "fewer streams" in reported["left_out"][0]["reason"]
    assert ("streams", 2) in rows(reported)
    assert "Left out, because it cannot be simulated" in what_if(str(small), *few).stdout
    asked = what_if(str(small), *few, "--streams=8,32")
    assert asked.returncode == 2
    assert "fewer streams" in asked.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--unpartitioned=2",), ("unpartitioned", "write 0.1 or 10%")),
        (("--set=rate",), ("--set", "NAME=VALUE")),
        (("--set=no-such-setting=1",), ("--set no-such-setting=1", "unknown setting")),
        (("--set=gc-pacing=fast", *ONE_BAND), ("gc-pacing", "fast")),
        (("--set=pages-per-block=7", *ONE_BAND), ("pages-per-block",)),
        (("--set=capacity=9000TB",), ("--scale", "fewer --jobs")),
        (("--to=json",), ("--to", "what-if.html")),
        (("--to=/no/such/directory/a.html",), ("--to", "/no/such/directory")),
        (("--seeds=0",), ("--seeds",)),
    ],
    ids=lambda value: value[0] if value[0].startswith("--") else "",
)
def test_bad_input_names_the_flag_and_the_remedy(
    simulator: Path, small: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    done = what_if(str(small), *arguments)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr


def test_without_the_simulator_it_says_how_to_get_one(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setenv("PATH", "/nonexistent")
    words = ["--state-directory", str(tmp_path), "drive", "what-if", str(small)]
    with pytest.raises(Problem, match="make binaries") as raised:
        app(words, standalone_mode=False)
    assert raised.value.code is Code.COMPONENT_MISSING


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_when_it_is_ended_no_simulation_and_no_file_is_left(
    simulator: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """The signal reaches the command alone, not the simulations, as it is with a terminal that is closed."""
    output = tmp_path / "never.html"
    process = subprocess.Popen(
        command("field-report", "--set=duration=9000h", "--scale=128", "--jobs=2", f"--to={output}"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        simulations = wait_for_children(process.pid, 2)
        process.send_signal(number)
        _, complaint = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, complaint
    assert "nothing was written" in complaint
    assert not [pid for pid in simulations if Path(f"/proc/{pid}").exists()]
    assert list(tmp_path.iterdir()) == []


def wait_for_children(pid: int, count: int) -> list[int]:
    def children() -> list[int] | None:
        found = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
            if (Path("/proc") / child / "comm").read_text().startswith("cliffwatch-dri")
        ]
        return found if len(found) >= count else None

    return wait_until(children, "simulations that were begun")
