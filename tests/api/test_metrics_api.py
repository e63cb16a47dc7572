from testkit import journals
from tests.api.harness import ORDER, Api
from tests.api.metrics import scrape, value

from cliffwatch.base.version import VERSION
from cliffwatch.journal import Event, EventLog, EventType
from cliffwatch.model.run_state import RunState
from cliffwatch.store.models import RunRow


def test_every_label_is_there_from_the_start(api: Api) -> None:
    samples = scrape(api)
    names = {name for name, _ in samples}
    # What the process costs goes by the names that all exporters use.
    assert all(name.startswith(("cliffwatch_service_", "process_")) for name in names)
    assert samples[("process_resident_memory_bytes", frozenset())] > 0
    for state in RunState:
        assert samples[("cliffwatch_service_runs", frozenset({("state", state.value)}))] == 0
    for outcome in ("queued", "missed", "failed"):
        assert samples[("cliffwatch_service_schedule_firings", frozenset({("outcome", outcome)}))] == 0
    assert samples[("cliffwatch_service_build_info", frozenset({("version", VERSION)}))] == 1
    assert samples[("cliffwatch_service_address_info", frozenset({("url", "http://127.0.0.1:9899")}))] == 1
    assert samples[("cliffwatch_service_scheduler_running", frozenset())] == 1
    labels = {"method": "PUT", "route": "/api/v1/runs/{run_id}", "status": "5xx"}
    assert samples[("cliffwatch_service_http_requests_total", frozenset(labels.items()))] == 0


def test_runs_are_counted_by_state_and_requests_by_route(api: Api) -> None:
    run_id = api.post("/runs", ORDER).json()["id"]
    assert value(api, "runs", state="queued") == 1
    api.post(f"/runs/{run_id}/stop")
    assert value(api, "runs", state="queued") == 0
    assert value(api, "runs", state="finished") == 1
    labels = {"method": "POST", "route": "/api/v1/runs/{run_id}/stop"}
    assert value(api, "http_requests_total", status="2xx", **labels) == 1
    assert value(api, "http_request_duration_seconds_count", **labels) == 1
    assert value(api, "http_request_duration_seconds_bucket", le="+Inf", **labels) == 1
    assert value(api, "http_request_duration_seconds_sum", **labels) > 0


def test_the_newest_runs_are_reported_one_by_one_with_their_verdicts(api: Api) -> None:
    directory = journals.queue(api.settings.runs_directory, "ended")
    journals.start(directory)
    journals.finish(directory)
    journals.queue(api.settings.runs_directory, "waiting")
    for run_id in ("ended", "waiting"):
        api.index(run_id)
    infos = [dict(labels) for name, labels in scrape(api) if name == "cliffwatch_service_run_info"]
    assert {info["run_id"]: (info["state"], info["verdict"]) for info in infos} == {
        "ended": ("finished", "pass"),
        "waiting": ("queued", ""),
    }
    assert value(api, "run_start_timestamp_seconds", run_id="ended") == journals.START + 2
    assert value(api, "run_finish_timestamp_seconds", run_id="ended") == journals.START + 66
    headlines = [dict(labels) for name, labels in scrape(api) if name == "cliffwatch_service_run_headline_info"]
    assert [headline["run_id"] for headline in headlines] == ["ended"]
    assert headlines[0]["headline"]
    assert headlines[0]["p99"] == ""
    with api.services.database.session() as session:
        session.get_one(RunRow, "ended").figures = {"latency": "publish", "p99_seconds": 0.00402}
    assert [dict(labels)["p99"] for name, labels in scrape(api) if "headline" in name] == ["publish p99 4.02 ms"]
    with api.services.database.session() as session:
        ended = session.get_one(RunRow, "ended")
        ended.created_at = (ended.finished_at or 0) + 1
    for without in ("waiting", "ended"):
        labels = frozenset({("run_id", without)})
        assert ("cliffwatch_service_run_finish_timestamp_seconds", labels) not in scrape(api)


def test_a_schedule_says_when_it_fires_next_unless_it_will_not(api: Api) -> None:
    for name, enabled in (("nightly", True), ("asleep", False)):
        trigger = {"kind": "cron", "expression": "0 3 * * *", "time_zone": "UTC"}
        made = api.post("/schedules", {"name": name, **ORDER, "trigger": trigger, "enabled": enabled})
        assert made.status_code == 201, made.text
    found = {labels: at for (name, labels), at in scrape(api).items() if "schedule_next_timestamp" in name}
    assert list(found) == [frozenset({("schedule", "nightly")})]
    assert found.popitem()[1] % 86400 == 3 * 3600


def test_a_path_that_is_none_makes_no_series_of_its_own(api: Api) -> None:
    before = set(scrape(api))
    for path in ("/a", "/b"):
        api.client.request("BREW", path)
    for method in ("BREW", "POUR"):
        api.client.request(method, "/healthz")
    assert set(scrape(api)) == before
    assert value(api, "http_requests_total", method="none", route="none", status="4xx") == 4


def test_journal_bytes_not_yet_indexed_are_the_index_lag(api: Api) -> None:
    directory = journals.queue(api.settings.runs_directory, "one")
    api.index("one")
    assert value(api, "journal_index_lag_bytes") == 0
    EventLog(directory).append(Event(journals.START, EventType.NOTE, "unread"))
    assert value(api, "journal_index_lag_bytes") > 0
    api.index("one")
    assert value(api, "journal_index_lag_bytes") == 0
