"""libFuzzer, guided by coverage, on each reader of bytes that come from outside."""

import os
import re
import secrets
import subprocess
import tempfile
from pathlib import Path

import pytest
from testkit.checkout import ROOT, STATE

#: Each has a corpus; fuzz/tests/replay.rs holds the names to those of the program.
TARGETS = sorted(path.name for path in (ROOT / "fuzz" / "corpus").iterdir())
SECONDS = 20
MEMORY = Path("/dev/shm")
#: Seconds that an input may take, and memory of the process; fuzz/src/bounded.rs limits each allocation.
LIMITS = ("-timeout=10", "-rss_limit_mb=1024", "-max_len=4096")
#: Each edge of the program is counted, and what is compared is shown to the fuzzer. Options of LLVM's pass, which every
#: release of the compiler takes.
COVERAGE = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
)
_EXECUTED = re.compile(r"^stat::number_of_executed_units: (\d+)", re.MULTILINE)
_COVERED = re.compile(r"^#\d+\t(\w+) +cov: (\d+)", re.MULTILINE)

pytestmark = [
    pytest.mark.real(why="inputs at random; make test replays those that failed once"),
    pytest.mark.timeout(1200),
]


@pytest.fixture(scope="module")
def fuzzer() -> Path:
    """The program with all targets, built so that its coverage is counted."""
    said = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    host: str
    [host] = re.findall(r"^host: (\S+)", said, re.MULTILINE)
    directory = STATE / "target" / "fuzz"
    # With a target named, programs that only build others are left as they are: without libFuzzer they would not link.
    command = ("cargo", "build", "--locked", "--package=cliffwatch-fuzz", "--features=guided", f"--target={host}")
    environment = {**os.environ, "CARGO_TARGET_DIR": str(directory), "RUSTFLAGS": " ".join(COVERAGE)}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-4000:]
    return Path(directory, host, "debug", "guided")


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_breaks_what_the_target_promises(target: str, fuzzer: Path, tmp_path: Path) -> None:
    kept, found = ROOT / "fuzz" / "corpus" / target, tmp_path / "found"
    found.mkdir()
    seed = secrets.randbelow(2**31 - 1) + 1
    command = [
        str(fuzzer),
        f"-max_total_time={SECONDS}",
        f"-seed={seed}",
        f"-artifact_prefix={tmp_path}/",
        "-print_final_stats=1",
        *LIMITS,
        str(found),
        str(kept),
    ]
    # Files are made and removed thousands of times a second: in memory, where there is such a place.
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as temporary:
        environment = {**os.environ, "FUZZ_TARGET": target, "TMPDIR": temporary}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", check=False)
    [failing] = [*tmp_path.glob("*-*"), None][:1]
    repeat = f"FUZZ_TARGET={target} {fuzzer} {' '.join(LIMITS)} {failing}"
    assert ran.returncode == 0, f"{ran.stderr[-6000:]}\n{failing} fails with -seed={seed}; to repeat it:\n{repeat}"
    [executed] = _EXECUTED.findall(ran.stderr)
    covered = [(event, int(edges)) for event, edges in _COVERED.findall(ran.stderr)]
    begun = next(edges for event, edges in covered if event == "INITED")
    print(f"{target}: -seed={seed}, {executed} inputs, {begun} edges at the beginning, {covered[-1][1]} at the end")
    # Without coverage there would be no edges, and this would not be fuzzing but guessing.
    assert begun > 100
    assert int(executed) > 20 * SECONDS
