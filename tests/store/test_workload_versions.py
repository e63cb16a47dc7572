from testkit.journals import synthetic_workload

from cliffwatch.store.database import Database
from cliffwatch.store.queries import workloads_page
from cliffwatch.store.workloads import add_built_in, find_workload, put_workload


def test_the_same_document_keeps_its_version_and_a_changed_one_makes_the_next(database: Database) -> None:
    with database.session() as session:
        first, made = put_workload(session, synthetic_workload(), 1.0)
        assert (first.version, made) == (1, True)
        again, made = put_workload(session, synthetic_workload(), 2.0)
        assert (again.version, made) == (1, False)
        changed, made = put_workload(session, synthetic_workload(description="longer"), 3.0)
        assert (changed.version, made) == (2, True)
        back, made = put_workload(session, synthetic_workload(), 4.0)
        assert (back.version, made) == (3, True)


def test_old_versions_stay_readable(database: Database) -> None:
    with database.session() as session:
        put_workload(session, synthetic_workload(description="one"), 1.0)
        put_workload(session, synthetic_workload(description="two"), 2.0)
    with database.snapshot() as session:
        first, newest = find_workload(session, "steady", 1), find_workload(session, "steady")
        assert first is not None
        assert newest is not None
        assert (first.document["description"], newest.document["description"]) == ("one", "two")
        assert find_workload(session, "steady", 3) is None


def test_a_built_in_workload_does_not_displace_what_a_user_made_of_it(database: Database) -> None:
    with database.session() as session:
        add_built_in(session, synthetic_workload(), 1.0)
        put_workload(session, synthetic_workload(description="mine"), 2.0)
        add_built_in(session, synthetic_workload(), 3.0)
        newest = find_workload(session, "steady")
        assert newest is not None
        assert (newest.version, newest.document["description"]) == (2, "mine")


def test_a_list_holds_the_newest_version_of_each(database: Database) -> None:
    with database.session() as session:
        put_workload(session, synthetic_workload("b"), 1.0)
        put_workload(session, synthetic_workload("a"), 2.0)
        put_workload(session, synthetic_workload("b", description="new"), 3.0)
        assert [(row.name, row.version) for row in workloads_page(session, 10)] == [("a", 1), ("b", 2)]
        assert [row.name for row in workloads_page(session, 10, after=["a"])] == ["b"]
