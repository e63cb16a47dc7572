"""Commands that a test allows, as the owner of a machine does."""

from pathlib import Path

import yaml

SYSBENCH = """
version: 1
description: sysbench's synced random writes
target: directory
prepare: [sysbench, fileio, '--file-total-size={size_mib}M', --file-num=4, prepare]
command:
  - sysbench
  - fileio
  - --file-total-size={size_mib}M
  - --file-num=4
  - --file-test-mode={mode}
  - --file-fsync-freq=1
  - --threads={threads}
  - --rate={rate}
  - --time={seconds}
  - --report-interval=1
  - --percentile=99
  - run
arguments:
  mode: {choices: [rndwr, seqwr], default: rndwr}
  threads: {least: 1, most: 64, default: 1}
  rate: {least: 1, most: 100000, default: 50}
  size_mib: {least: 16, most: 1048576, default: 64}
writes: '{size_mib}MiB'
rate: '{rate}'
output:
  format: progress
  pattern: 'fsyncs: (?P<operations_per_second>[0-9.]+)/s latency \\(ms,99%\\): (?P<p99>[0-9.]+)'
  unit: milliseconds
operation: sync
"""
DB_BENCH = """
version: 1
description: RocksDB's db_bench, filling at random
target: directory
command:
  - db_bench
  - --benchmarks=fillrandom
  - --db={directory}/db
  - --num=100000000
  - --duration={seconds}
  - --stats_interval_seconds=1
  - --benchmark_write_rate_limit={bytes_per_second}
arguments:
  bytes_per_second: {least: 1000, most: 1e10, default: 2000000}
writes: 1GiB
output:
  format: progress
  stream: stderr
  pattern: 'thread [0-9]+: \\((?P<operations>[0-9]+),'
"""


def allow(state_directory: Path, name: str, text: str) -> Path:
    """Write a command's file."""
    directory = state_directory / "commands"
    directory.mkdir(mode=0o755, exist_ok=True, parents=True)
    path = directory / f"{name}.yaml"
    path.write_text(text)
    path.chmod(0o644)
    return path


def definition(**changes: object) -> str:
    """Text of a small command with changes."""
    document: dict[str, object] = {
        "version": 1,
        "target": "observed",
        "command": ["true"],
        "output": {"format": "latencies", "unit": "milliseconds"},
    }
    return yaml.safe_dump({key: value for key, value in (document | changes).items() if value is not None})
