"""Runs with several targets, as they are asked for, planned, listed and found again."""

import json
from pathlib import Path
from typing import Any

import pytest
from testkit.loops import loop_drive
from tests.api.harness import ORDER, Api
from tests.api.target_orders import directory, order

from cliffwatch.app.index import rebuild
from cliffwatch.gate import combined_key, targets_overlap
from cliffwatch.journal import JournalReader, files
from cliffwatch.model.order import RunOrder
from cliffwatch.model.request import RunRequest, Submission
from cliffwatch.model.target import SyntheticTarget, parse_targets, targets_text

OTHER = {"kind": "synthetic", "name": "elsewhere"}
BOTH: dict[str, Any] = {**ORDER, "more_targets": [OTHER]}


def test_a_run_on_two_targets_has_a_part_for_each(api: Api) -> None:
    run = api.put("/runs/both", BOTH).json()
    assert (run["target"], run["more_targets"]) == (ORDER["target"], [OTHER])
    stored = JournalReader(Path(run["directory"])).document(files.ORDER)
    assert list(RunOrder.model_validate(stored).parts) == ["nowhere", "elsewhere"]
    (listed,) = api.get("/runs").json()["items"]
    assert listed["more_targets"] == [OTHER]
    # The same request is the same run, and one on other targets is not.
    assert api.put("/runs/both", BOTH).status_code == 200
    assert api.put("/runs/both", ORDER).status_code == 409


def test_parts_have_the_names_that_were_given_and_a_repeated_run_has_them_too(api: Api) -> None:
    run = api.put("/runs/both", BOTH | {"part_names": [None, "left"]}).json()
    stored = RunOrder.model_validate(JournalReader(Path(run["directory"])).document(files.ORDER))
    assert list(stored.parts) == ["nowhere", "left"]
    assert api.put("/runs/both", BOTH).status_code == 409


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["one", "one"], "'one' is taken"),
        ([None, "local"], "'local' is taken"),
        (["a", "b", "c"], "3 are given for 2 targets"),
        (["Left", None], "it is to match the pattern"),
    ],
)
def test_a_wrong_name_of_a_part_is_named(api: Api, names: list[str | None], said: str) -> None:
    response = api.post("/runs", BOTH | {"part_names": names})
    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert "part_names" in error["field"] + error["message"]
    assert said in error["message"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (BOTH | {"part_names": ["right", "left"]}, "the run has no part 'lift'; did you mean 'left'?"),
        (ORDER, "a run with one target has none, so leave `of part` out"),
    ],
)
def test_a_limit_on_a_part_that_the_run_has_not_is_refused(api: Api, asked: dict[str, Any], said: str) -> None:
    limited = {**asked, "workload": {**asked["workload"], "limits": ["p99 of part lift <= 20ms"]}}
    for path in ("/runs/plan", "/runs"):
        response = api.post(path, limited)
        assert (response.status_code, response.json()["code"]) == (422, "workload_invalid")
        (error,) = response.json()["errors"]
        assert error["field"] == "limits.0"
        assert said in error["message"]
    fitting = {**limited["workload"], "limits": ["p99 of any part <= 20ms"]}
    assert api.post("/runs", {**asked, "workload": fitting}).status_code == 201


def test_a_run_with_one_target_has_no_name_for_a_part(api: Api) -> None:
    assert "omit it" in api.post("/runs", ORDER | {"part_names": ["one"]}).text


def test_an_order_of_one_target_is_as_versions_before_parts_read_it(api: Api) -> None:
    run = api.put("/runs/one", ORDER).json()
    assert run["more_targets"] == []
    stored = json.loads((Path(run["directory"]) / files.ORDER).read_text())
    assert not {"more_targets", "part_names"} & set(stored)
    first = next(JournalReader(Path(run["directory"])).events()).event
    assert "more_targets" not in first.detail
    digest = RunRequest.model_validate(ORDER).digest
    assert (digest, RunRequest.model_validate({**ORDER, "more_targets": []}).digest) == (
        first.detail["request_digest"],
    ) * 2


def test_another_run_on_either_target_waits(api: Api) -> None:
    api.put("/runs/both", BOTH)
    api.put("/runs/second", {**ORDER, "target": OTHER})
    assert api.get("/runs/second").json()["waits_for"] == ["both"]
    assert targets_overlap(combined_key(["drive:a+b", "synthetic:x"]), "drive:b")
    assert not targets_overlap(combined_key(["drive:a+b", "synthetic:x"]), combined_key(["drive:c", "synthetic:y"]))


def test_two_targets_on_one_drive_are_refused(api: Api, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    asked = order(directory(tmp_path / "one")) | {"more_targets": [directory(tmp_path / "two")]}
    plan = api.post("/runs/plan", asked).json()
    assert "targets_share_a_drive" in [objection["code"] for objection in plan["objections"]]
    response = api.post("/runs", asked)
    assert (response.status_code, response.json()["code"]) == (409, "target_unsafe")
    assert f"{tmp_path}/one and directory:{tmp_path}/two are on one drive" in response.text
    assert list(api.settings.runs_directory.iterdir()) == []


def test_each_drive_wants_its_own_sentence_and_what_is_said_names_its_target(api: Api, tmp_path: Path) -> None:
    with loop_drive(tmp_path / "one.image") as one, loop_drive(tmp_path / "two.image") as two:
        targets = [{"kind": "device", "identity": str(drive.file)} for drive in (one, two)]
        asked = order(targets[0]) | {"more_targets": targets[1:]}
        plan = api.post("/runs/plan", asked).json()
        assert len(set(plan["confirmations"])) == 2
        assert plan["confirmation"] == plan["confirmations"][0]
        missing = [item["message"] for item in plan["objections"] if item["code"] == "confirmation_missing"]
        assert [message.partition(": ")[0] for message in missing] == [f"device:{drive.file}" for drive in (one, two)]
        assert {write["path"] for write in plan["writes"]} == {str(one.node), str(two.node)}
        confirmed = [
            {**target, "confirmation": sentence}
            for target, sentence in zip(targets, plan["confirmations"], strict=True)
        ]
        half = api.post("/runs", asked | {"target": confirmed[0]})
        assert (half.status_code, half.json()["code"]) == (409, "target_unsafe")
        run = api.post("/runs", asked | {"target": confirmed[0], "more_targets": confirmed[1:]})
        assert run.status_code == 201
        first = next(JournalReader(Path(run.json()["directory"])).events()).event
        submission = Submission.from_detail(first.detail, "")
        first_asked, second_asked = submission.asked
        assert first_asked.blocks == submission.target_blocks
        assert second_asked.blocks not in (None, submission.target_blocks)
        assert plan["part_names"] == [one.name, two.name]


def test_a_target_of_the_wrong_kind_is_named_wherever_it_stands(api: Api, tmp_path: Path) -> None:
    response = api.post("/runs", {**ORDER, "more_targets": [directory(tmp_path)]})
    assert (response.status_code, response.json()["code"]) == (422, "workload_invalid")
    too_many = api.post("/runs", {**ORDER, "more_targets": [OTHER] * 16})
    assert too_many.status_code == 422
    assert too_many.json()["errors"][0]["field"] == "more_targets"


def test_several_targets_survive_the_database(api: Api) -> None:
    api.put("/runs/both", BOTH)
    with api.services.database.session() as session:
        rebuild(session, api.settings.runs_directory)
    assert api.get("/runs/both").json()["more_targets"] == [OTHER]


def test_targets_as_one_text_come_back() -> None:
    one, other = SyntheticTarget(name="one"), SyntheticTarget(name="other")
    assert targets_text([one]) == "synthetic:one"
    for targets in ((one,), (one, other)):
        assert parse_targets(targets_text(targets)) == targets
