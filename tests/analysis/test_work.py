"""Work that was not done: a load that stands still, or fades away, is a finding whatever its percentiles say."""

from collections.abc import Callable, Iterable

import pytest

from cliffwatch.analysis.csv_table import read_table
from cliffwatch.analysis.finding import Finding, LimitedBy, Notice
from cliffwatch.analysis.online.replay import replay
from cliffwatch.analysis.online.work_judge import WorkJudge
from cliffwatch.analysis.run_analysis import analysis
from cliffwatch.analysis.run_evidence import FindingSummary
from cliffwatch.analysis.table import Table
from cliffwatch.analysis.table_evidence import evidence_of_table
from cliffwatch.analysis.verdict import degrades, judge
from cliffwatch.analysis.wording import sentence_of
from cliffwatch.analysis.work import not_asked_for
from cliffwatch.model.run_state import Verdict, VerdictName

#: How others write that nothing was completed in a second.
NOTHING = {"zeros": "0.000,0.0", "empty": ",0", "nan": "-nan,0.0"}
Row = Callable[[int], str]


def wobble(index: int) -> float:
    return 1.0 + 0.04 * ((index * 7919) % 101 / 101 - 0.5)


def healthy(index: int, rate: float = 2900.0, latency: float = 0.0023) -> str:
    return f"{latency * wobble(index):.6f},{rate * wobble(index + 3):.1f}"


def table_of(rows: Iterable[str], window: float = 1.0, columns: str = "p50,operations_per_second") -> Table:
    lines = [f"{index * window:g},{row}" for index, row in enumerate(rows)]
    return read_table([f"elapsed_seconds,{columns}", *lines])


def found_in(table: Table, mode: str, notices: tuple[Notice, ...] = ()) -> tuple[list[Finding], Verdict]:
    find = analysis if mode == "offline" else replay
    findings = find(table.series, table.samples, list(notices), table.window_seconds)
    known = {one.name: one for one in table.series}
    said = [(each, sentence_of(each, known[each.series])) for each in findings]
    summaries = tuple(FindingSummary(each.kind.value, words) for each, words in said if degrades(each, known))
    return findings, judge(evidence_of_table(table, summaries, not_asked_for(said)))


def stalls_at(moments: tuple[int, ...], length: int, nothing: str) -> Row:
    def row(index: int) -> str:
        for moment in moments:
            if moment <= index < moment + length:
                return nothing
            if index == moment + length:
                return f"{length + 0.055:.3f},12.0"
        return healthy(index)

    return row


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
def test_a_database_that_stands_still_for_a_minute_is_found_each_time(nothing: str, mode: str) -> None:
    row = stalls_at((900, 1200, 1500), 67, nothing)
    findings, verdict = found_in(table_of(map(row, range(1800))), mode)
    assert [(each.kind, each.onset, each.until) for each in findings] == [
        ("stall", at, at + 67) for at in (900.0, 1200.0, 1500.0)
    ]
    for each in findings:
        assert each.undone is not None
        assert (each.undone.seconds, each.undone.times, each.undone.limited_by) == (67.0, 1, LimitedBy.TARGET)
        assert each.undone.oldest_seconds == pytest.approx(67.055)
        assert each.detected == each.onset + 10
        # What was never completed is part of no baseline.
        assert each.baseline == pytest.approx(2900, rel=0.02)
    assert verdict.name is VerdictName.DEGRADED
    assert verdict.reasons[0].startswith("Nothing was completed for 1m7s, after 2,8")
    assert "; the oldest operation waited 67.1 s. 2 more findings follow." in verdict.reasons[0]


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
def test_a_database_that_never_comes_back_does_not_pass(nothing: str, mode: str) -> None:
    rows = [healthy(index) if index < 90 else nothing for index in range(180)]
    findings, verdict = found_in(table_of(rows, window=10.0), mode)
    (stall,) = findings
    assert (stall.kind, stall.onset, stall.until) == ("stall", 900.0, None)
    assert stall.undone is not None
    assert (stall.undone.seconds, stall.undone.limited_by) == (900.0, None)
    assert verdict.name is VerdictName.DEGRADED
    assert verdict.reasons[0].startswith("Nothing has been completed for 15m, after 2,8")


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_stalls_without_end_are_counted_together_from_the_fourth_on(mode: str) -> None:
    row = stalls_at(tuple(range(600, 7200, 600)), 20, NOTHING["zeros"])
    findings, _ = found_in(table_of(map(row, range(7200))), mode)
    stalls = [each for each in findings if each.kind == "stall"]
    assert [each.onset for each in stalls] == [600.0, 1200.0, 1800.0]
    assert [each.undone.times for each in stalls if each.undone] == [1, 1, 9]
    last = stalls[-1].undone
    assert last is not None
    assert last.seconds == 9 * 20
    series = table_of(map(row, range(10))).series[-1]
    assert sentence_of(stalls[-1], series).startswith("Nothing was completed 9 times, 3m in all, after ")


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_a_client_that_asks_for_nothing_makes_the_run_invalid(mode: str) -> None:
    rows = [f"{healthy(i)},0.002" if not 600 <= i < 700 else ",0,0" for i in range(1200)]
    columns = "p50,operations_per_second,oldest_outstanding_seconds"
    (stall,), verdict = found_in(table_of(rows, columns=columns), mode)
    assert stall.undone is not None
    assert (stall.kind, stall.undone.limited_by) == ("stall", LimitedBy.CLIENT)
    assert verdict.name is VerdictName.INVALID
    assert "nothing was outstanding, so that the client asked for nothing" in verdict.reasons[0]


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_an_operation_that_waits_through_the_stall_is_the_target_s(mode: str) -> None:
    rows = [f"{healthy(i)},0.002" if not 600 <= i < 700 else f",0,{i - 599}" for i in range(1200)]
    columns = "p50,operations_per_second,oldest_outstanding_seconds"
    (stall,), verdict = found_in(table_of(rows, columns=columns), mode)
    assert stall.undone is not None
    assert (stall.undone.limited_by, stall.undone.oldest_seconds) == (LimitedBy.TARGET, 100.0)
    assert verdict.name is VerdictName.DEGRADED


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize("length", [400, 2000])
def test_a_load_that_fades_away_is_found_and_is_the_client_s(mode: str, length: int) -> None:
    """Its latency stays: whatever the generator asks for is served as fast as before."""
    rows = [healthy(i, rate=2900 * min(1.0, max(0.1, 1 - (i - 600) / length))) for i in range(600 + 2 * length)]
    findings, verdict = found_in(table_of(rows, window=10.0), mode)
    (fall,) = findings
    assert (fall.kind, fall.until) == ("shortfall", None)
    assert fall.ratio < 0.5
    # At three quarters of the rate.
    assert fall.onset == pytest.approx(10 * (600 + length / 4), abs=300)
    assert fall.undone is not None
    assert fall.undone.limited_by is LimitedBy.CLIENT
    assert verdict.name is VerdictName.INVALID
    assert verdict.reasons[0].startswith("The client was the bottleneck: ")
    assert "the latency stayed as it was, so that the client asked for less" in verdict.reasons[0]


def test_a_shortfall_that_is_over_says_until_when() -> None:
    rows = [healthy(i, rate=900.0 if 600 <= i < 900 else 2900.0) for i in range(1500)]
    (fall,), _ = found_in(table_of(rows, window=10.0), "offline")
    assert fall.kind == "shortfall"
    assert fall.onset == pytest.approx(6000, abs=60)
    assert fall.until == pytest.approx(9000, abs=60)
    assert fall.undone is not None
    assert fall.undone.seconds == pytest.approx(3000, abs=60)


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_the_level_of_a_shortfall_is_that_of_its_last_ten_minutes(mode: str) -> None:
    rows = [healthy(i, rate=2900.0 if i < 600 else 900.0 if i < 800 else 300.0) for i in range(900)]
    (fall,), _ = found_in(table_of(rows, window=10.0), mode)
    assert fall.level == pytest.approx(300, rel=0.05)


def test_a_shortfall_is_judged_by_the_healthy_latency_of_the_whole_first_hour() -> None:
    """The latency rises after the first 100 windows, and the rate falls twice: with the rise, and long after."""
    rows = [
        healthy(i, 900.0 if 100 <= i < 170 or i >= 800 else 2900.0, 0.0023 if i < 100 else 0.0035) for i in range(900)
    ]
    table = table_of(rows, window=10.0)
    judge_of_work = WorkJudge(table.series, table.window_seconds)
    (fall,) = [each for sample in table.samples for each in judge_of_work.feed(sample, is_judged=True)]
    assert fall.kind == "shortfall"
    assert fall.onset == pytest.approx(8000, abs=60)


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_clients_that_wait_for_a_slower_target_complete_less_and_that_is_one_finding(mode: str) -> None:
    rows = [healthy(i, 2900.0, 0.0023) if i < 600 else healthy(i, 290.0, 0.023) for i in range(1200)]
    findings, verdict = found_in(table_of(rows, window=10.0), mode)
    assert [each.kind for each in findings] == ["cliff"]
    assert verdict.name is VerdictName.DEGRADED


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("rare operations", lambda i: healthy(i, 0.1) if i % 3 == 0 else ",0"),
        ("a pause of seconds", lambda i: ",0" if 900 <= i < 908 else healthy(i)),
        ("a dip of minutes", lambda i: healthy(i, 900.0) if 900 <= i < 1300 else healthy(i)),
        ("a rate that sways", lambda i: healthy(i, 2900.0 if i // 300 % 2 else 1700.0)),
        ("a counter that is reset", lambda i: "0.0023,0" if i in (900, 950) else healthy(i)),
        ("a rate that rises", lambda i: healthy(i, 1000.0 + i)),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_sparse_paused_or_varying_load_is_no_undone_work_and_passes(kind: str, row: Row, mode: str) -> None:
    findings, verdict = found_in(table_of(map(row, range(3000))), mode)
    assert [each for each in findings if each.undone is not None] == [], kind
    assert verdict.name is VerdictName.PASS


def test_a_gap_is_no_stall_and_a_restart_explains_one() -> None:
    lines = [f"{i},{healthy(i)}" for i in range(1200) if not 600 <= i < 650]
    gap = read_table(["elapsed_seconds,p50,operations_per_second", *lines])
    assert found_in(gap, "offline")[0] == []
    rows = [healthy(i) if not 600 <= i < 650 else ",0" for i in range(1200)]
    assert [each.kind for each in found_in(table_of(rows), "offline")[0]] == ["stall"]
    assert found_in(table_of(rows), "offline", (Notice(600.0, "leader_changed"),))[0] == []


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_a_first_hour_without_an_operation_is_a_stall(mode: str) -> None:
    rows = [",0" if index < 120 else healthy(index) for index in range(240)]
    (stall,), verdict = found_in(table_of(rows, window=30.0), mode)
    assert (stall.kind, stall.onset, stall.until) == ("stall", 0.0, 3600.0)
    assert verdict.name is VerdictName.DEGRADED
    assert verdict.reasons[0].startswith("Nothing was completed for 1h, before 2,")


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize("first", [1, 5, 9])
def test_a_stall_before_the_rate_is_known_is_found_once_it_is(first: int, mode: str) -> None:
    rows = [",0" if first <= index < first + 6 else healthy(index) for index in range(60)]
    (stall,), verdict = found_in(table_of(rows, window=10.0), mode)
    assert (stall.onset, stall.until) == (first * 10.0, (first + 6) * 10.0)
    assert verdict.name is VerdictName.DEGRADED


def test_a_load_that_stands_still_after_a_few_windows_is_found_before_its_end() -> None:
    rows = [healthy(index) if index < 5 else ",0" for index in range(60)]
    (stall,), _ = found_in(table_of(rows, window=10.0), "online")
    assert (stall.onset, stall.detected, stall.until) == (50.0, 150.0, None)


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_quantiles_that_freeze_beside_a_rate_of_0_are_a_stall(mode: str) -> None:
    """As exporters show them whose summaries keep their last values."""
    rows = ["0.002131,0" if 240 <= index < 300 else healthy(index) for index in range(480)]
    (stall,), verdict = found_in(table_of(rows, window=30.0), mode)
    assert (stall.kind, stall.onset, stall.until) == ("stall", 7200.0, 9000.0)
    assert verdict.name is VerdictName.DEGRADED


@pytest.mark.parametrize(("columns", "words"), [("p50", " in what was seen; "), ("p50,operations_per_second", ".")])
def test_a_pass_of_a_table_without_a_rate_is_of_what_was_seen(columns: str, words: str) -> None:
    rows = [healthy(index).rsplit(",", 1)[0] if columns == "p50" else healthy(index) for index in range(480)]
    _, verdict = found_in(table_of(rows, window=30.0, columns=columns), "offline")
    assert verdict.name is VerdictName.PASS
    assert verdict.reasons[0].removeprefix("No degradation was found").startswith(words)


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_one_long_window_with_a_rate_of_0_beside_a_latency_is_of_a_counter_that_was_reset(mode: str) -> None:
    rows = [healthy(index, rate=0.0 if index in (4, 100, 250) else 2900.0) for index in range(480)]
    findings, verdict = found_in(table_of(rows, window=30.0), mode)
    assert findings == []
    assert verdict.name is VerdictName.PASS


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize("row", ["0.0021,0", ",0"], ids=["frozen", "empty"])
def test_a_table_in_which_nothing_was_completed_does_not_pass(row: str, mode: str) -> None:
    rows = [f"{wobble(index) * 0.002:.6f},0" if row.startswith("0.") else row for index in range(200)]
    _, verdict = found_in(table_of(rows, window=10.0), mode)
    assert verdict.name is VerdictName.INVALID
    assert verdict.reasons[0] == "No operation was completed in 200 rows."
