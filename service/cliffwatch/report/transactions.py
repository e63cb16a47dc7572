"""Report section on where the time of a database's transactions went: what they waited for, and what the drive did.

The time by what sessions waited for is Little's law on samples of them: the mean number of sessions that wait for
something is the transactions per second times the mean time that each waits for it. Windows without samples, because
the server did not answer, are left out with their transactions.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from cliffwatch.base.histogram import Histogram
from cliffwatch.base.units import format_latency, format_number, format_share, six_digits
from cliffwatch.journal import JournalReader, JournalWindow
from cliffwatch.model.database import (
    CLIENT,
    CPU,
    DATA,
    LOCK,
    OTHER,
    SAMPLES,
    WAL,
    WAL_FLUSH_TIME,
    WAL_FLUSHES,
    WAL_WRITE_TIME,
)
from cliffwatch.model.operation import Operation
from cliffwatch.model.phase import Phase
from cliffwatch.report.checkpoints import Checkpoints
from cliffwatch.report.collect import Collected
from cliffwatch.report.latency import HOUR_SECONDS, LatencyGroup
from cliffwatch.report.schema.report import TransactionRow, Transactions

_WAITS = {
    "wal_seconds": WAL,
    "data_seconds": DATA,
    "lock_seconds": LOCK,
    "client_seconds": CLIENT,
    "cpu_seconds": CPU,
    "other_seconds": OTHER,
}
#: Waits in words, for the sentence.
_WORDS = {
    "wal_seconds": "waiting for the WAL",
    "data_seconds": "waiting for pages of tables",
    "lock_seconds": "waiting for locked rows",
    "client_seconds": "waiting for the client",
    "cpu_seconds": "computing",
    "other_seconds": "waiting for something else",
}
#: A wait is named in the sentence from this share of a transaction's time.
_NAMED_FROM = 0.05
#: Checkpoints that take no more of the time are compared with the time between them.
_RARE_UP_TO = 0.5
#: A window belongs to a checkpoint that covers so much of it.
_COVERED = 0.5


def transactions_document(run: Collected) -> Transactions | None:
    """The section; None where no session was sampled, or no transaction completed."""
    sampled = [window for window in run.windows if window.counters.get(SAMPLES)]
    checkpoints = Checkpoints(run.events)
    rows: list[TransactionRow] = []

    def add(span: dict[str, str | int], windows: Sequence[JournalWindow], histograms: Mapping[str, Histogram]) -> None:
        if (row := _row(windows, histograms, checkpoints)) is not None:
            rows.append(cast(TransactionRow, span | row))

    add({"span": "load"}, sampled, _merged(run.latency))
    if not rows or run.load is None:
        return None
    for phase in dict.fromkeys(window.phase for window in sampled):
        windows = [window for window in sampled if window.phase == phase]
        add({"span": "phase", "phase": phase}, windows, _merged(group for group in run.latency if group.phase == phase))
    for span, (windows, histograms) in _by_checkpoint(run, sampled, checkpoints).items():
        add({"span": span}, windows, histograms)
    hours = {group.hour for group in run.latency}
    for hour in sorted(hours) if len(hours) > 1 else ():
        begin = run.load.start + hour * HOUR_SECONDS
        windows = [window for window in sampled if begin - 1e-6 <= window.start < begin + HOUR_SECONDS - 1e-6]
        add({"span": "hour", "hour": hour}, windows, _merged(group for group in run.latency if group.hour == hour))
    return {"sentence": " ".join([_sentence(rows[0]), *_on_checkpoints(rows)]), "rows": rows}


def _by_checkpoint(
    run: Collected, sampled: Sequence[JournalWindow], checkpoints: Checkpoints
) -> dict[str, tuple[list[JournalWindow], dict[str, Histogram]]]:
    """Windows after the warm-up that a checkpoint covers for at least half, those that none touches, and their
    histograms; empty unless there are both."""
    if not checkpoints:
        return {}
    found: dict[str, list[JournalWindow]] = {"checkpoint": [], "between_checkpoints": []}
    judged = [window for window in sampled if window.phase != Phase.WARM_UP]
    for window, share in zip(judged, checkpoints.shares(judged), strict=True):
        if share == 0 or share >= _COVERED:
            found["checkpoint" if share else "between_checkpoints"].append(window)
    if not all(found.values()):
        return {}
    reader = JournalReader(run.directory)
    return {
        span: (windows, reader.merged(windows, lambda window: "span").get("span", {}))
        for span, windows in found.items()
    }


def _row(
    windows: Sequence[JournalWindow], histograms: Mapping[str, Histogram], checkpoints: Checkpoints
) -> dict[str, float] | None:
    """Means of a transaction over some windows, without the row's span; None without a transaction."""
    total = {name: sum(window.counters.get(name, 0) for window in windows) for name in _counted(windows)}
    count = total.get("operations", 0)
    response = histograms.get(Operation.TRANSACTION.value)
    if not count or response is None or not response.count:
        return None
    service = histograms.get(f"{Operation.TRANSACTION}_service", response)
    (p99,) = response.percentiles_seconds([0.99])
    assert p99 is not None, "something was counted"
    seconds = sum(window.seconds for window in windows)
    row: dict[str, float] = {
        "transactions": count,
        "response_seconds": response.sum_seconds() / response.count,
        "response_p99_seconds": p99,
        "service_seconds": service.sum_seconds() / service.count,
    }
    row |= {name: total.get(counter, 0) / total[SAMPLES] * seconds / count for name, counter in _WAITS.items()}
    row["wal_flushes"] = total.get(WAL_FLUSHES, 0) / count
    if WAL_FLUSH_TIME in total:
        row["wal_flush_seconds"] = (total[WAL_FLUSH_TIME] + total.get(WAL_WRITE_TIME, 0)) / 1000 / count
    for kind in ("write", "flush"):
        requests, milliseconds = (total.get(f"device_{kind}_{what}", 0) for what in ("operations", "milliseconds"))
        if "device_write_operations" in total:
            row[f"drive_{_PLURAL[kind]}"] = requests / count
        if requests:
            row[f"drive_{kind}_seconds"] = milliseconds / 1000 / requests
    row["checkpoint_ratio"] = checkpoints.ratio(windows)
    return {name: value if name == "transactions" else six_digits(value) for name, value in row.items()}


_PLURAL = {"write": "writes", "flush": "flushes"}


def _counted(windows: Sequence[JournalWindow]) -> list[str]:
    """Names of all counters of the windows."""
    return list(dict.fromkeys(name for window in windows for name in window.counters))


def _merged(groups: Iterable[LatencyGroup]) -> dict[str, Histogram]:
    merged: dict[str, Histogram] = {}
    for group in groups:
        for name, histogram in group.histograms.items():
            merged.setdefault(name, Histogram()).merge(histogram)
    return merged


def _sentence(row: TransactionRow) -> str:
    """Sentences on how long a transaction took, what it waited for, and how often the drive was asked."""
    took = row["service_seconds"]
    times: dict[str, float] = {name: row[name] for name in _WAITS}  # type: ignore[literal-required]
    waits = sorted(times.items(), key=lambda item: -item[1])
    parts = [
        f"{format_latency(seconds)} ({format_share(round(seconds / took, 2))}) {_WORDS[name]}"
        for name, seconds in waits
        if took > 0 and seconds >= took * _NAMED_FROM
    ]
    sentences = [f"A transaction took {format_latency(took)} on average{': ' if parts else ''}{', '.join(parts)}."]
    flushes = f"The server flushed its WAL {format_number(row['wal_flushes'])} times for each"
    if "wal_flush_seconds" in row:
        flushes += f", which took {format_latency(row['wal_flush_seconds'])}"
    sentences.append(f"{flushes}.")
    if "drive_writes" in row and "drive_write_seconds" in row:
        drive = f"The drive completed {format_number(row['drive_writes'])} writes for each, in "
        drive += f"{format_latency(row['drive_write_seconds'])} on average"
        if "drive_flush_seconds" in row:
            drive += f", and {format_number(row.get('drive_flushes', 0.0))} flushes, in "
            drive += format_latency(row["drive_flush_seconds"])
        sentences.append(f"{drive}.")
    return " ".join(sentences)


def _on_checkpoints(rows: Sequence[TransactionRow]) -> list[str]:
    """A sentence on the latency while checkpoints were written, and between them; none unless there was both, and most
    of the time none was written: else the little time between them need not be like the rest."""
    by_span = {row["span"]: row for row in rows}
    share = rows[0]["checkpoint_ratio"]
    if "checkpoint" not in by_span or share > _RARE_UP_TO:
        return []
    within, between = by_span["checkpoint"], by_span["between_checkpoints"]
    p99 = [format_latency(row["response_p99_seconds"]) for row in (within, between)]
    return [f"While a checkpoint was written, {format_share(share)} of the time, the p99 was {p99[0]}, else {p99[1]}."]
