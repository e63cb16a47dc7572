"""Files that are recognised by their lines, without --from."""

from pathlib import Path

import pytest
from tests.labs.outputs.printed import FILES, HELD, OTHERS, SLOWEST, STALLED, hlog, text_of
from typer.testing import CliRunner, Result

from cliffwatch.base.errors import Problem
from cliffwatch.cli.main import app
from cliffwatch.labs.outputs.formats import recognised
from cliffwatch.labs.outputs.names import OutputFormat

RECORDED = {
    **STALLED,
    **{name: format_ for name, (format_, *_) in (SLOWEST | HELD).items()},
    **OTHERS,
    "pgbench-both-progress.txt": OutputFormat.PGBENCH,
}
LINES = {
    "1700000000 10 20000 41000000 1000 9000": OutputFormat.PGBENCH,
    "[READ], 1000, 6117.721951219512": OutputFormat.YCSB,
    "total ops , adj row/s,    op/s,    pk/s,   row/s,    mean,  time": OutputFormat.CASSANDRA_STRESS,
    "time             operations/s   rows/s   errors  max   99.9th   99th   95th": OutputFormat.SCYLLA_BENCH,
    "    Time    Cycles    Errors    Thrpt.     ────────── Latency [ms/op] ──────────": OutputFormat.LATTE,
    '{\n  "result": {\n    "requests_per_cycle": 1.0,': OutputFormat.LATTE,
    "Label,Phase,RuntimeMS,Rank,MixType,Done%,DoneBytes,MiB/s,IOPS,Entries,Entries/s,Active": OutputFormat.ELBENCHO,
    "idx\tthread\top\tclient_id\tn_objects\tbytes": OutputFormat.WARP,
    "index\top\thost\tduration_s\tobjects_per_op": OutputFormat.WARP,
    '{"type":"Point","data":{"time":"2017-05-09T14:34:45Z","value":5,"tags":null},"metric":"vus"}': OutputFormat.K6,
    "\x7f\x03\x01\x01\x06Result\x01Seq\x08BytesOut": OutputFormat.VEGETA,
    '{\n "status": "success",\n "data": {\n "resultType": "vector"': OutputFormat.PROMETHEUS,
    "  sec Cur ops   started  finished  avg MB/s  cur MB/s last lat(s)  avg lat(s)": OutputFormat.RADOS_BENCH,
    "\n".join(hlog([5_000_000], 1e6)): OutputFormat.HLOG,
}


def analyzed(path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["analyze", str(path), *arguments])


@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_is_of_its_own_format_alone(name: str) -> None:
    assert recognised(text_of(name)[:400], name) is RECORDED[name]


@pytest.mark.parametrize("name", ["real_clat.1.log", "soak_lat.log", "real_slat.1.log", "real_bw.1.log"])
def test_a_log_of_fio_is_recognised_by_its_lines_and_its_name(name: str) -> None:
    assert recognised(["1, 5000, 1, 4096, 0, 0", "2, 5100, 1, 4096, 8192, 0"], name) is OutputFormat.FIO_LOG


def test_a_log_of_fio_whose_name_does_not_say_of_what_is_asked_for() -> None:
    with pytest.raises(Problem) as raised:
        recognised(["5, 1000, 1, 4096"], "a.log")
    (fault,) = raised.value.faults
    assert (
        fault.message == "looks like a log of fio, and its name does not say of what; if of latencies, --from fio-log"
    )


@pytest.mark.parametrize("text", LINES)
def test_lines_of_other_forms_are_recognised(text: str) -> None:
    assert recognised(text.split("\n"), "a") is LINES[text]


def test_the_verdict_is_that_with_the_name_of_the_program() -> None:
    with_name, without = (analyzed(FILES / "k6.csv.gz", *arguments) for arguments in (["--from", "k6"], []))
    assert without.exit_code == with_name.exit_code == 1
    taken = " It was taken for the output of k6 (--from says otherwise)."
    assert taken in without.stdout
    assert without.stdout.replace(taken, "") == with_name.stdout


def test_a_unit_is_taken_for_a_recognised_file(tmp_path: Path) -> None:
    path = tmp_path / "a.hlog"
    path.write_text("\n".join(hlog([5_000_000] * 30, 1.0)), encoding="utf-8")
    problem = analyzed(path).exception
    assert isinstance(problem, Problem)
    assert "does not show the unit of its latencies" in problem.faults[0].message
    assert analyzed(path, "--latency-unit", "ns").stdout.startswith("verdict: pass")


def test_a_table_stays_a_table_whatever_else_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "soak.csv"
    rows = [f"{10 * number},{0.005 + number % 3 / 1e4},progress: 5.0 s" for number in range(60)]
    path.write_text("\n".join(["elapsed_seconds,p99,note", *rows]), encoding="utf-8")
    assert recognised(path.read_text(encoding="utf-8").split("\n"), "soak.csv") is None
    lines = ["elapsed_seconds;p99", "progress: 5.0 s, 100.0 tps, lat 2.000 ms stddev 1.000"]
    assert recognised(lines, "soak.csv") is None


@pytest.mark.parametrize("text", ["hello", "", "a,b,c\n1,2,3", '{"a": 1}'])
def test_other_files_are_refused_as_tables(tmp_path: Path, text: str) -> None:
    assert recognised(text.split("\n"), "a") is None
    path = tmp_path / "a"
    path.write_text(text, encoding="utf-8")
    result = analyzed(path)
    assert isinstance(result.exception, Problem)
    assert result.exception.faults[0].field == "a line 1"


WRK2 = [
    "Running 30s test @ http://127.0.0.1:80/index.html",
    "  2 threads and 100 connections",
    "  Thread calibration: mean lat.: 9747 usec, rate sampling interval: 21 msec",
    "  Thread Stats   Avg      Stdev     Max   +/- Stdev",
]


@pytest.mark.parametrize("lines", [text_of("wrk.txt"), text_of("wrk-errors.txt"), WRK2], ids=["wrk", "errors", "wrk2"])
def test_figures_of_a_whole_run_are_refused_by_the_name_of_wrk(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    problem = analyzed(path).exception
    assert isinstance(problem, Problem)
    (fault,) = problem.faults
    assert fault.field == "a.txt"
    assert fault.message.startswith(
        "is of wrk or wrk2, which print figures of the whole run and no windows; vegeta and"
    )
    assert recognised(["  2 threads and 100 connections"], "a") is None


def test_wrk_beside_the_lines_of_another_program_does_not_hide_them() -> None:
    assert recognised([*text_of("ycsb.txt")[:300], *text_of("wrk.txt")], "a") is OutputFormat.YCSB


def test_lines_of_two_formats_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("\n".join([*text_of("ycsb.txt"), *text_of("sysbench.txt")]), encoding="utf-8")
    problem = analyzed(path).exception
    assert isinstance(problem, Problem)
    assert problem.faults[0].message == "has lines of sysbench and ycsb; say which it is with --from"
