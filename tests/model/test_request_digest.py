"""The digest of a request: what makes a repeated submission the same one, also across versions."""

from cliffwatch.model.request import RunRequest

#: As version 0.1 computed it, which knew a single target.
OF_ONE_TARGET = "cbe1cc8b694ffa66938b29d7286dffbc8f34c0280dbf25cca364933f17bcda21"
BODY = {
    "workload": "kafka-soak@3",
    "target": {"kind": "directory", "path": "/srv/one"},
    "durations": {"soak": "36h"},
}
TWO, THREE = ({"kind": "directory", "path": f"/srv/{name}"} for name in ("two", "three"))


def test_a_request_with_one_target_has_the_digest_that_it_had_before_there_were_several() -> None:
    assert RunRequest.model_validate(BODY).digest == OF_ONE_TARGET
    assert RunRequest.model_validate(BODY | {"more_targets": [], "labels": {}}).digest == OF_ONE_TARGET
    assert RunRequest.model_validate(BODY | {"labels": {"release": "26.1"}}).digest != OF_ONE_TARGET


def test_drives_of_other_hosts_are_part_of_it() -> None:
    asked = RunRequest.model_validate(BODY | {"drives": 'prometheus:device="a"'})
    assert asked.digest == RunRequest.model_validate(BODY | {"drives": asked.drives}).digest
    assert asked.digest not in {
        OF_ONE_TARGET,
        RunRequest.model_validate(BODY | {"drives": 'prometheus:device="b"'}).digest,
    }


def test_further_targets_and_their_order_are_part_of_it() -> None:
    digests = {
        RunRequest.model_validate(BODY | {"more_targets": more}).digest
        for more in ([], [TWO], [TWO, THREE], [THREE, TWO])
    }
    assert len(digests) == 4
