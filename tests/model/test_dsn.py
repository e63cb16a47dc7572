"""Addresses of databases."""

import pytest

from cliffwatch.base.errors import Problem
from cliffwatch.model.dsn import Dsn
from cliffwatch.model.target import PostgresTarget, parse_target


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql://soak@db.example:6432/bench", Dsn("soak", "db.example", 6432, "bench")),
        ("postgres://soak@127.0.0.1/bench", Dsn("soak", "127.0.0.1", 5432, "bench")),
        ("postgresql://soak@[::1]:5433/bench", Dsn("soak", "::1", 5433, "bench")),
        ("postgresql://soak@/bench?host=/run/postgresql", Dsn("soak", "/run/postgresql", 5432, "bench")),
        ("postgresql://soak@%2Frun%2Fpostgresql/bench", Dsn("soak", "/run/postgresql", 5432, "bench")),
        ("postgresql://so%40ak@h/be%2Fnch", Dsn("so@ak", "h", 5432, "be/nch")),
    ],
)
def test_an_address_is_parsed_and_its_canonical_form_means_the_same(text: str, expected: Dsn) -> None:
    assert Dsn.parse(text) == expected
    assert Dsn.parse(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("postgresql://soak:secret@h/bench", "load.password_file"),
        ("postgresql://h/bench", "names no user"),
        ("postgresql://soak@h", "names no database"),
        ("postgresql://soak@/bench", "names no host"),
        ("postgresql://soak@h/bench?host=/run", "names two hosts"),
        ("postgresql://soak@h:0/bench", "is no port"),
        ("postgresql://soak@h:٣/bench", "is no port"),
        ("postgresql://soak@h/bench?sslmode=off", "'sslmode' is not known"),
        ("postgresql://soak@/bench?host=run", "begins with a slash"),
        ("mysql://soak@h/bench", "no address of a database"),
        ("host=h dbname=bench", "no address of a database"),
        ("postgresql://soak@h/be\nnch", "control character"),
    ],
)
def test_an_address_that_cannot_be_is_refused_with_the_remedy(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Dsn.parse(text)


@pytest.mark.parametrize(
    ("text", "dsn", "directories"),
    [
        ("postgres://soak@h:1/bench@/data,/wal", "postgresql://soak@h:1/bench", ["/data", "/wal"]),
        ("postgresql://soak@h/bench", "postgresql://soak@h:5432/bench", []),
        ("postgres:postgresql://soak@h/bench@/da@/ta", "postgresql://soak@h:5432/bench", ["/da@/ta"]),
    ],
)
def test_a_target_of_a_database_is_parsed_and_printed(text: str, dsn: str, directories: list[str]) -> None:
    target = parse_target(text)
    assert target == PostgresTarget(dsn=dsn, data_directories=directories)
    assert parse_target(str(target)) == target


def test_a_password_in_a_target_is_refused_and_not_repeated() -> None:
    with pytest.raises(Problem) as refused:
        parse_target("postgres://soak:secret@h/bench")
    (fault,) = refused.value.faults
    assert fault.field == "target.dsn"
    assert "load.password_file" in fault.message
    assert "secret" not in f"{refused.value} {fault.message}"


@pytest.mark.parametrize(
    "text", ["postgres://soak@h/bench@data", "postgres://soak@h/bench@", "postgres:", "postgres://"]
)
def test_an_invalid_database_target_is_refused(text: str) -> None:
    with pytest.raises(Problem):
        parse_target(text)
