"""What `make test` says at its end."""

from testkit.suite import Part, program_seconds, summary

CARGO = """
    Finished `test` profile [optimized + debuginfo] target(s) in 2m 03s
     Running unittests src/lib.rs (target/debug/deps/cliffwatch_drive-0a1b2c3d4e5f6071)

running 2 tests
..
test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 3.25s

     Running tests/accuracy.rs (target/debug/deps/accuracy-0a1b2c3d4e5f6072)

test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 41.00s

   Doc-tests cliffwatch_drive

test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""


def test_cargos_programs_have_their_times() -> None:
    assert program_seconds(CARGO.splitlines()) == {
        "cargo: cliffwatch_drive": 3.25,
        "cargo: accuracy": 41.0,
        "cargo: documentation of cliffwatch_drive": 0.0,
    }


def test_the_ten_slowest_tests_are_listed_and_every_part_with_its_time() -> None:
    python = Part("Python", 130.0, 1, {f"tests.base::test_{number}": float(number) for number in range(20)})
    lines = summary([Part("Rust", 65.0, 0, {"cargo: accuracy": 41.0}), python]).splitlines()
    assert [line.split()[0] for line in lines[1:11]] == ["41.0", "19.0", *(f"{19 - n}.0" for n in range(1, 9))]
    assert [line.split(maxsplit=2)[2] for line in lines[11:]] == ["Rust", "Python FAILED", "in all: 3 min 15 s"]
