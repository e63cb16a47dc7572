"""Windows for other programs: every one, every gap, and nothing that was not measured."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from testkit.journals import rewritten
from testkit.recorded_runs import LOAD_START, Ending, GapEvent, JournalPlan, make_journal

from cliffwatch.analysis.csv_table import EXPORT_COLUMN, read_table
from cliffwatch.base.errors import Problem
from cliffwatch.base.histogram import Histogram
from cliffwatch.engines.synthetic import SyntheticLoad
from cliffwatch.journal import JournalReader
from cliffwatch.report.build import build
from cliffwatch.report.export.formats import WRITERS, write_analyzable, write_csv, write_parquet
from cliffwatch.report.export.window_table import COLUMNS, table_of

DOCS = Path(__file__).resolve().parents[3] / "docs"


def two_latencies(index: int) -> dict[str, Histogram]:
    write, read = Histogram(), Histogram()
    write.record(2_000_000, 100)
    read.record(500_000, 50 + index)
    return {"write": write, "read": read}


def device(index: int) -> dict[str, int]:
    return {"device_write_operations": 100, "device_write_milliseconds": 200 + index}


def rows_of(directory: Path) -> list[dict[str, str]]:
    output = io.BytesIO()
    write_csv(table_of(directory), output)
    return list(csv.DictReader(io.StringIO(output.getvalue().decode())))


def parquet_of(directory: Path, tmp_path: Path) -> Any:
    with (tmp_path / "run.parquet").open("wb") as output:
        write_parquet(table_of(directory), output)
    return pq.read_table(tmp_path / "run.parquet")


def test_the_analysis_knows_this_format_by_its_first_column() -> None:
    assert COLUMNS[0] == EXPORT_COLUMN


def test_each_window_has_a_row_for_each_operation_as_the_journal_has_it(tmp_path: Path) -> None:
    plan = JournalPlan(windows=4, latency=two_latencies, counters=device, warm_up_windows=1)
    directory = make_journal(tmp_path / "run", plan)
    rows = rows_of(directory)
    assert [(row["window"], row["operation"]) for row in rows] == [
        (str(number), name) for number in range(4) for name in ("read", "write")
    ]
    windows = {str(window.seq): window for window in JournalReader(directory).windows()}
    for row in rows:
        window = windows[row["window"]]
        summary = window.latency[row["operation"]]
        assert row["row"] == "window"
        assert float(row["start_timestamp_seconds"]) == window.start
        assert float(row["end_elapsed_seconds"]) == window.end - LOAD_START
        assert float(row["measured_seconds"]) == window.seconds
        assert row["phase"] == window.phase
        assert int(row["count"]) == summary["count"]
        for name in ("p50", "p90", "p99", "p999", "p9999", "max"):
            assert float(row[f"{name}_seconds"]) == summary[name]
        assert int(row["device_write_milliseconds"]) == window.counters["device_write_milliseconds"]
        assert float(row["schedule_debt_seconds"]) == 0.0


def test_no_name_of_a_journal_is_a_formula_in_a_spreadsheet(tmp_path: Path) -> None:
    formula = "=HYPERLINK(A1)"
    plan = JournalPlan(
        windows=10,
        missing={3, 4},
        gaps=(GapEvent(3, 4, f"@{formula}"),),
        counters=lambda index: {formula: 1},
        latency=lambda index: {f"-{name}": histogram for name, histogram in two_latencies(index).items()},
    )
    directory = make_journal(tmp_path / "run", plan)
    for write in (write_csv, write_analyzable):
        output = io.BytesIO()
        write(table_of(directory), output)
        fields = [field for line in csv.reader(io.StringIO(output.getvalue().decode())) for field in line]
        assert not [field for field in fields if field[:1] in {"=", "@", "+"} or field[:2] in {"-r", "-w"}]
    rows = rows_of(directory)
    assert {row["gap_reason"] for row in rows} == {"", f"'@{formula}"}
    assert {row["operation"] for row in rows} == {"", "'-read", "'-write"}
    assert {row[f"'{formula}"] for row in rows} == {"", "1"}


def test_a_gap_is_a_row_with_its_reason_and_without_a_figure(tmp_path: Path) -> None:
    plan = JournalPlan(windows=10, missing={3, 4, 9}, gaps=(GapEvent(3, 4, "engine_died"),))
    rows = rows_of(make_journal(tmp_path / "run", plan))
    gaps = [row for row in rows if row["row"] == "gap"]
    bounds = [(row["start_elapsed_seconds"], row["end_elapsed_seconds"], row["gap_reason"]) for row in gaps]
    assert bounds == [("30.0", "50.0", "engine_died"), ("90.0", "100.0", "unexplained")]
    for row in gaps:
        reported = {"row", "gap_reason", *(name for name in row if name.startswith(("start_", "end_")))}
        assert {name for name, field in row.items() if field != ""} == reported
    assert [row["window"] or "gap" for row in rows] == ["0", "1", "2", "gap", "3", "4", "5", "6", "gap"]


def test_unmeasured_values_are_exported_empty_and_never_as_zero(tmp_path: Path) -> None:
    def sometimes(index: int) -> dict[str, int]:
        return {"files_deleted": 0} if index == 1 else {}

    plan = JournalPlan(
        windows=3, counters=sometimes, latency=lambda index: {} if index == 2 else {"write": Histogram()}
    )
    directory = make_journal(tmp_path / "run", plan)
    rows = rows_of(directory)
    assert [row["files_deleted"] for row in rows] == ["", "0", ""]
    assert [(row["operation"], row["count"], row["p99_seconds"]) for row in rows] == [
        ("write", "0", ""),
        ("write", "0", ""),
        ("", "", ""),
    ]
    assert parquet_of(directory, tmp_path).column("files_deleted").to_pylist() == [None, 0, None]


def test_a_stall_is_a_row_that_was_measured_with_nothing_completed(tmp_path: Path) -> None:
    def gauges(index: int) -> dict[str, float]:
        return {} if index == 3 else {"oldest_outstanding_seconds": {1: 10.5}.get(index, 0.0)}

    plan = JournalPlan(
        windows=5,
        missing={4},
        latency=lambda index: {"publish": Histogram.from_values({2_000_000: 100})} if index in (0, 2) else {},
        counters=lambda index: {"operations": 0} if index in (1, 3) else {},
        gauges=gauges,
    )
    rows = rows_of(make_journal(tmp_path, plan))
    named = ("row", "operations", "stalled", "oldest_outstanding_seconds", "measured_seconds", "p99_seconds")
    assert [tuple(row[name] for name in named)[:5] for row in rows] == [
        ("window", "10000", "0", "0.0", "10.0"),
        ("window", "0", "1", "10.5", "10.0"),
        ("window", "10000", "0", "0.0", "10.0"),
        ("window", "0", "", "", "10.0"),
        ("gap", "", "", "", ""),
    ]
    assert [row["p99_seconds"] != "" for row in rows] == [True, False, True, False, False]


def test_parquet_holds_what_the_csv_holds_with_types(tmp_path: Path) -> None:
    directory = make_journal(tmp_path / "run", JournalPlan(windows=12, missing={5}, latency=two_latencies))
    table = parquet_of(directory, tmp_path)
    lines = rows_of(directory)
    assert table.column_names == list(lines[0])
    assert table.num_rows == len(lines)
    for row, line in zip(table.to_pylist(), lines, strict=True):
        assert {name: "" if value is None else str(value) for name, value in row.items()} == line
    assert str(table.schema.field("window").type) == "int64"
    assert str(table.schema.field("operation").type) == "string"
    assert str(table.schema.field("p99_seconds").type) == "double"
    assert json.loads(table.schema.metadata[b"cliffwatch"])["run_id"] == "run-1"


def test_a_run_that_goes_on_gives_the_windows_that_are_committed(tmp_path: Path) -> None:
    directory = make_journal(tmp_path / "run", JournalPlan(windows=5, ending=Ending(how=None)))
    table = table_of(directory)
    content = (directory / "windows.jsonl").read_bytes()
    # One more came while it was written, and the next is on its way.
    (directory / "windows.jsonl").write_bytes(content + content.splitlines(keepends=True)[-1] + b'{"seq": 6, "sta')
    assert [row["window"] for row in table.rows()] == [0, 1, 2, 3, 4]


def test_a_run_whose_load_never_began_is_a_header_alone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert rows_of(tmp_path / "run") == []
    assert parquet_of(tmp_path / "run", tmp_path).num_rows == 0


def test_a_damaged_journal_gives_what_is_left_of_it(tmp_path: Path) -> None:
    directory = make_journal(tmp_path / "run", JournalPlan(windows=5))
    lines = (directory / "windows.jsonl").read_bytes().splitlines(keepends=True)
    lines[2] = b"damaged\n"
    lines[3] = rewritten(lines[3], counters=json.loads(lines[3])["counters"] | {"operations": 1 << 70})
    (directory / "windows.jsonl").write_bytes(b"".join(lines))
    assert [row["row"] for row in rows_of(directory)] == ["window", "window", "gap", "window"]
    assert parquet_of(directory, tmp_path).column("operations").to_pylist() == [10_000, 10_000, None, 10_000]


def test_analyze_reads_its_own_format_and_finds_what_the_journal_shows(tmp_path: Path) -> None:
    load = SyntheticLoad.model_validate({"time": "virtual", "cliff_after": "50m", "seed": 3})
    plan = JournalPlan(windows=600, baseline_windows=60, missing={100, 101, 102}, load=load, counters=device)
    directory = make_journal(tmp_path / "run", plan)
    with (tmp_path / "run.csv").open("wb") as output:
        write_analyzable(table_of(directory), output)
    table = read_table((tmp_path / "run.csv").read_text().splitlines())
    assert len(table.samples) == 597
    assert table.gaps == ((1000.0, 1030.0),)
    assert table.samples[0].values["device.write_latency"] == pytest.approx(0.002)
    assert table.samples[0].phase == "baseline"
    expected = [each for each in build(directory).document["findings"] if each["kind"] == "cliff"]
    assert len(expected) == 1
    command = [sys.executable, "-m", "cliffwatch.cli.main", "analyze", str(tmp_path / "run.csv"), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"] == "degraded"
    (cliff,) = [each for each in found["findings"] if each["kind"] == "cliff"]
    assert cliff["onset_seconds"] == pytest.approx(expected[0]["onset_seconds"], abs=20)


def test_nothing_timed_is_nothing_to_analyse(tmp_path: Path) -> None:
    directory = make_journal(tmp_path / "run", JournalPlan(windows=3, latency=lambda index: {}))
    with pytest.raises(Problem, match="no window with a latency"):
        write_analyzable(table_of(directory), io.BytesIO())


def test_every_column_is_described(tmp_path: Path) -> None:
    page = (DOCS / "export.md").read_text(encoding="utf-8")
    assert [name for name in COLUMNS if f"`{name}`" not in page] == []
    assert [name for name in WRITERS if f"| `{name}` |" not in page] == []


def cliffwatch(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CLIFFWATCH_")}
    command = [sys.executable, "-m", "cliffwatch.cli.main", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, check=False)


def test_the_command_writes_to_a_file_or_to_stdout(tmp_path: Path) -> None:
    directory = str(make_journal(tmp_path / "run", JournalPlan(windows=3)))
    to_stdout = cliffwatch("run", "export", directory)
    assert to_stdout.returncode == 0, to_stdout.stderr
    to_file = cliffwatch("run", "export", directory, "--to", str(tmp_path / "run.csv"))
    assert to_file.returncode == 0, to_file.stderr
    assert (tmp_path / "run.csv").read_bytes() == to_stdout.stdout
    assert len(to_stdout.stdout.splitlines()) == 4
    unknown = cliffwatch("run", "export", directory, "--format", "xls")
    assert unknown.returncode == 2
    assert b"formats: csv, parquet, analyze, omb" in unknown.stderr
    nowhere = cliffwatch("run", "export", directory, "--to", str(tmp_path / "none" / "run.csv"))
    assert nowhere.returncode == 2
    assert b"cannot be written" in nowhere.stderr


#: Writes both formats of a journal and prints the most memory that it ever took, in KiB. Not by getrusage: that counts
#: what the process that started this one had.
MEASURED = """
import sys
from pathlib import Path
from cliffwatch.report.export.formats import write_csv, write_parquet
from cliffwatch.report.export.window_table import table_of
for write in (write_csv, write_parquet):
    with open("/dev/null", "wb") as output:
        write(table_of(Path(sys.argv[1])), output)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.real(why="36 h of windows are written and exported, and memory compared")
def test_memory_does_not_grow_with_the_run(tmp_path: Path) -> None:
    short = make_journal(tmp_path / "short", JournalPlan(windows=200, latency=two_latencies))
    long = make_journal(tmp_path / "long", JournalPlan(windows=200, latency=two_latencies))
    lines = (short / "windows.jsonl").read_bytes().splitlines()
    # 36 h: the same windows, moved on.
    with (long / "windows.jsonl").open("wb") as output:
        for number in range(12_960):
            start = LOAD_START + number * 10
            output.write(rewritten(lines[number % 200], seq=number, start=start, end=start + 10))
    peaks = [
        int(subprocess.run([sys.executable, "-c", MEASURED, path], capture_output=True, check=True).stdout)
        for path in (short, long)
    ]
    # Lists of the rows of 36 h would be some 60 MB.
    assert peaks[1] - peaks[0] < 25_000, peaks
