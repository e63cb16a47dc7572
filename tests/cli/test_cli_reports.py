"""`run report` where there is none yet: made on the spot, by the service or, of a directory, without one."""

import json
from pathlib import Path

from testkit import journals
from testkit.recorded_runs import JournalPlan, make_journal
from tests.api.harness import serving
from tests.cli.machine import Machine

from cliffwatch.cli.client import ApiClient
from cliffwatch.cli.reports import fetched
from cliffwatch.model.settings import read_settings


def test_a_report_is_made_of_a_directory_without_a_service(idle: Machine, tmp_path: Path) -> None:
    journal = make_journal(tmp_path / "run-1", JournalPlan(windows=30))
    before = sorted(path.name for path in journal.iterdir())
    done = idle.run("run", "report", str(journal), "--to", str(tmp_path / "report.json"))
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "report.json").read_text())["verdict"]["name"] == "pass"
    assert sorted(path.name for path in journal.iterdir()) == before


def test_a_report_that_is_missing_is_asked_for_and_then_fetched(tmp_path: Path) -> None:
    with serving(read_settings(state_directory=tmp_path / "state")) as api:
        directory = journals.queue(api.settings.runs_directory, "one")
        journals.start(directory)
        journals.measure(directory, 3)
        api.index("one")
        with ApiClient(str(api.client.base_url), api.tokens["operate"]) as client:
            so_far = json.loads(fetched(client, "one", "json", anew=False))
            journals.measure(directory, 2)
            later = json.loads(fetched(client, "one", "json", anew=False))
            journals.finish(directory)
            api.index("one")
            at_last = fetched(client, "one", "html", anew=False)
    assert [document["coverage"]["measured_seconds"] for document in (so_far, later)] == [3, 5]
    assert b"<html" in at_last
    assert (directory / "report.html").read_bytes() == at_last
