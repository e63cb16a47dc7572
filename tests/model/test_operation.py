"""The primary latency of a run, among the names that its windows have."""

import pytest

from cliffwatch.model.operation import primary_latency
from cliffwatch.model.part_names import of_part, split_part


@pytest.mark.parametrize(
    ("names", "primary"),
    [
        (["read", "write", "publish"], "publish"),
        (["query", "update"], "query"),
        # A part's latency is never the run's where the run has its own.
        (["alpha/query", "query"], "query"),
        (["alpha/publish", "append"], "append"),
        (["alpha/write", "beta/write", "alpha/publish"], "alpha/publish"),
        # Names of others that have a slash are not those of a part.
        (["GET /read", "POST /write"], "GET /read"),
        (["GET /read", "write"], "write"),
        ([], None),
    ],
)
def test_the_primary_latency_is_the_first_that_a_client_waits_for(names: list[str], primary: str | None) -> None:
    assert primary_latency(names) == primary


@pytest.mark.parametrize("own", ["append", "259:0.queue_depth", "a/b"])
def test_a_name_is_split_as_it_was_composed(own: str) -> None:
    assert split_part(of_part("nvme3n1", own)) == ("nvme3n1", own)


@pytest.mark.parametrize("name", ["append", "GET /read", "/read", "nvme3n1/", "Nvme/append"])
def test_a_name_that_is_not_of_a_part_stays_whole(name: str) -> None:
    assert split_part(name) == ("", name)
