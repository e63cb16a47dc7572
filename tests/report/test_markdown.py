"""A run's result as Markdown: what a ticket needs, and nothing that Markdown takes for markup."""

from pathlib import Path
from typing import cast

from testkit.recorded_runs import JournalPlan, make_journal
from tests.report.cliff_run import PLAN
from tests.report.documents import document_of

from cliffwatch.base.histogram import Histogram
from cliffwatch.report.markdown import markdown
from cliffwatch.report.schema.report import ReportDocument


def plain(text: str) -> str:
    return text.replace("\\", "")


def document_in(directory: Path, plan: JournalPlan) -> ReportDocument:
    return cast(ReportDocument, document_of(make_journal(directory, plan)))


def test_a_run_that_fell_off_a_cliff_is_said_in_a_ticket(tmp_path: Path) -> None:
    document = document_in(tmp_path / "run", PLAN)
    lines = markdown(document).splitlines()
    assert lines[0].startswith(f"### ▲ degraded: {document['run']['workload']['name']} on ")
    assert lines[2] == f"- {document['verdict']['reasons'][0]}"
    rows = [line.split(" | ") for line in lines if line.startswith("| ")]
    assert rows[0] == ["| ", "baseline", "soak |"]
    soak = next(row for row in document["latency"]["write"]["phases"] if row["phase"] == "soak")
    p99 = next(row for row in rows if row[0] == "| write p99")
    assert p99[2].removesuffix(" ms |") == f"{soak['p99_seconds'] * 1000:.3g}"
    assert lines[-1].startswith(f"Run `{document['run']['id']}`, measured 100.00 % of ")


def test_a_finding_is_listed_once(tmp_path: Path) -> None:
    """With the verdict's reasons, or below them."""
    document = document_in(tmp_path / "run", PLAN)
    text = markdown(document)
    sentences = [finding["sentence"] for finding in document["findings"]]
    assert sentences
    assert [plain(text).count(plain(sentence)) for sentence in sentences] == [1] * len(sentences)
    document["verdict"]["reasons"] = ["the reason"]
    assert [plain(markdown(document)).count(plain(sentence)) for sentence in sentences] == [1] * len(sentences)


def test_limits_say_whether_they_held_and_what_broke_them(tmp_path: Path) -> None:
    slow = Histogram.from_values({50_000_000: 100})
    limits = ("p99 <= 20ms", "p50 <= 1s", "p99 of absent <= 1s")
    plan = JournalPlan(windows=60, limits=limits, latency=lambda _: {"publish": slow})
    text = markdown(document_in(tmp_path / "run", plan))
    assert "- ✕ p99 \\<= 20ms: 50 ms at 0:00:00" in text
    assert "- ✓ p50 \\<= 1s: " in text
    assert "- ? p99 of absent \\<= 1s: not judged, " in text


def test_a_run_without_a_window_and_names_with_markup_are_text(tmp_path: Path) -> None:
    hostile = "a|b <img src=x> `c` [d](e)\n# f"
    document = document_in(tmp_path / "run", JournalPlan(windows=3, missing={0, 1, 2}))
    document["run"]["target"] = hostile
    first = markdown(document).splitlines()[0]
    assert first.endswith(" on a\\|b \\<img src=x\\> \\`c\\` \\[d\\](e) # f")
