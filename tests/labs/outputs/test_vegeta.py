"""vegeta's results: a line for each request, numbered by attack."""

import json
from pathlib import Path

import pytest
from tests.labs.outputs.printed import text_of
from tests.labs.outputs.reading import read, refusal, verdict

from cliffwatch.labs.outputs.names import OutputFormat

VEGETA = OutputFormat.VEGETA
START = 1_790_000_000_000_000_000


def result(number: int, code: int = 200, error: str = "", milliseconds: float = 0.0, attack: str = "") -> str:
    latency = round(1e6 * (milliseconds or 5 + number % 7 / 10))
    return f"{START + 100_000_000 * number},{code},{latency},0,3,{error},b2sK,{attack},{number},GET,http://a/,"


def steady(seconds: int) -> list[str]:
    return [result(number) for number in range(10 * seconds)]


def test_a_steady_target_passes(tmp_path: Path) -> None:
    assert verdict(tmp_path / "v.csv", VEGETA, steady(60))[0] == "pass"
    lines = text_of("vegeta.csv.gz")
    before = [line for line in lines if int(line[:19]) < int(lines[0][:19]) + 29e9]
    assert verdict(tmp_path / "v.csv", VEGETA, before)[0] == "pass"


def test_a_slow_target_is_degraded(tmp_path: Path) -> None:
    slow = [result(number, milliseconds=5 if number < 600 else 50) for number in range(1200)]
    assert verdict(tmp_path / "v.csv", VEGETA, slow)[0] == "degraded"


def test_json_and_csv_of_the_same_results_are_the_same_table() -> None:
    one, other = (read(VEGETA, *text_of(name)).table for name in ("vegeta.json.gz", "vegeta.csv.gz"))
    assert [each.start for each in one.samples] == [each.start for each in other.samples]
    for left, right in zip(one.samples, other.samples, strict=True):
        assert dict(left.values) == pytest.approx(dict(right.values), rel=1e-3)


@pytest.mark.parametrize(("code", "error"), [(500, ""), (404, ""), (0, "dial tcp: refused"), (200, "unexpected EOF")])
def test_a_request_with_an_error_or_a_bad_status_failed(tmp_path: Path, code: int, error: str) -> None:
    lines = [*steady(60), result(600, code, error)]
    table = read(VEGETA, *lines).table
    assert (table.completed, table.errors) == (600, 1)
    assert verdict(tmp_path / "v.csv", VEGETA, lines)[0] == "degraded"


@pytest.mark.parametrize("code", [200, 204, 302, 399])
def test_other_statuses_are_successes_as_in_vegetas_own_report(code: int) -> None:
    assert read(VEGETA, *steady(30), result(300, code)).table.errors == 0


def test_requests_that_are_absent_are_refused() -> None:
    few = [line for number, line in enumerate(steady(60)) if not 300 <= number < 340]
    words = refusal(VEGETA, *few)
    assert words == "out.txt line 560: states 600 requests in all, and the lines before it add up to 560"


def test_results_of_several_attacks_are_not_compared_by_number() -> None:
    assert read(VEGETA, *steady(30), *steady(30)).operations == 600
    assert read(VEGETA, *steady(30), *(result(number, attack="b") for number in range(300))).operations == 600


REFUSED = {
    "binary": (["\x7f\x03\x01\x01\x06Result\x08BytesOut"], "line 1: is of vegeta's binary results; `vegeta encode"),
    "report": (["Requests      [total, rate, throughput]  696, 12.02, 12.02"], "line 1: is of vegeta's report, which"),
    "cut": ([*steady(3), "1790000000,200", *steady(3)], "line 31: '1790000000,200' is no result of vegeta; `vegeta"),
    "no number": ([*steady(3), result(30).replace(",200,", ",NaN,")], "line 31: "),
    "no code": ([json.dumps({"timestamp": "2026-09-21T14:13:20Z", "latency": 5})], "line 1: is no result of vegeta"),
    "negative": ([result(1, milliseconds=-5)], "line 1: "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_lines_are_refused_with_what_to_ask_vegeta_for(case: str) -> None:
    lines, message = REFUSED[case]
    words = refusal(VEGETA, *lines)
    assert words.startswith(f"out.txt {message}")
    assert words.endswith("`vegeta encode --to json results.bin` writes a line for each request")
