import yaml
from tests.api.harness import WORKLOAD, Api


def test_a_document_makes_a_version_once(api: Api) -> None:
    first = api.put("/workloads/steady", WORKLOAD)
    assert (first.status_code, first.json()["version"]) == (201, 1)
    assert first.headers["location"] == "/api/v1/workloads/steady?version=1"
    same = api.put("/workloads/steady", {**WORKLOAD, "phases": {"soak": "60s"}})
    assert (same.status_code, same.json()["version"]) == (200, 1)
    changed = api.put("/workloads/steady", {**WORKLOAD, "description": "calm"})
    assert (changed.status_code, changed.json()["version"]) == (201, 2)
    assert api.get("/workloads/steady").json() == changed.json()
    assert api.get("/workloads/steady?version=1").json() == first.json()
    assert api.get("/workloads/steady?version=3").status_code == 404


def test_a_document_goes_under_its_own_name(api: Api) -> None:
    response = api.put("/workloads/other", WORKLOAD)
    assert (response.status_code, response.json()["code"]) == (422, "workload_invalid")
    assert response.json()["errors"][0]["field"] == "name"
    assert api.get("/workloads/other").status_code == 404


def test_a_stored_document_is_whole_and_can_be_stored_again(api: Api) -> None:
    stored = api.put("/workloads/steady", WORKLOAD).json()
    assert stored["document"]["window"] == "1s"
    assert stored["document"]["on_interruption"] == "resume"
    assert api.put("/workloads/steady", stored["document"]).status_code == 200


def test_checking_a_workload_fills_it_in_and_stores_nothing(api: Api) -> None:
    for body in (WORKLOAD, {"yaml": yaml.safe_dump(WORKLOAD)}):
        response = api.post("/workloads/validate", body, scope="read")
        assert response.status_code == 200
        phases = {"warm_up": "0s", "steady": None, "baseline": "0s", "soak": "1m", "cool_down": "0s"}
        assert response.json()["phases"] == phases
    assert api.get("/workloads/steady").status_code == 404


def test_everything_wrong_with_a_workload_is_said_at_once(api: Api) -> None:
    wrong = {**WORKLOAD, "window": 10, "phases": {"soak": "1 fortnight"}, "colour": "red"}
    response = api.post("/workloads/validate", wrong)
    assert response.json()["code"] == "workload_invalid"
    assert {fault["field"] for fault in response.json()["errors"]} == {"window", "phases.soak", "colour"}
    for body in ({"yaml": "a: [b"}, {"yaml": "- 1"}, {"yaml": "version: 1"}):
        assert api.post("/workloads/validate", body).json()["code"] == "workload_invalid"
    unfit = {**WORKLOAD, "description": "a\0b"}
    for document in (unfit, {"yaml": yaml.safe_dump(unfit)}):
        assert api.post("/workloads/validate", document).json()["code"] == "workload_invalid"
    load = api.post("/workloads/validate", {**WORKLOAD, "load": {"median_latency": "2 parsec"}}).json()
    assert load["errors"][0]["field"] == "load.median_latency"


def test_workloads_are_listed_by_name_page_by_page(api: Api) -> None:
    built_in = {item["name"] for item in api.get("/workloads?limit=500").json()["items"]}
    for name in ("zz-one", "zz-two"):
        api.put(f"/workloads/{name}", {**WORKLOAD, "name": name})
    api.put("/workloads/zz-one", {**WORKLOAD, "name": "zz-one", "description": "newest"})
    names, page = [], None
    while True:
        body = api.get("/workloads", params={"limit": 1, **({"page": page} if page else {})}).json()
        names += [(item["name"], item["description"]) for item in body["items"] if item["name"] not in built_in]
        page = body["next_page"]
        if page is None:
            break
    assert names == [("zz-one", "newest"), ("zz-two", "")]


def test_the_workloads_that_come_with_the_program_are_there(api: Api) -> None:
    from cliffwatch.model.workload import BUILT_IN_WORKLOADS

    files = {path.stem for path in BUILT_IN_WORKLOADS.glob("*.yaml")}
    stored = {item["name"] for item in api.get("/workloads?limit=500").json()["items"]}
    assert stored == {yaml.safe_load((BUILT_IN_WORKLOADS / f"{stem}.yaml").read_text())["name"] for stem in files}
