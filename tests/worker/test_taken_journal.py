"""A file is moved out of the journal while its run goes on: what is measured from then on is not lost with it."""

import shutil
import time
from pathlib import Path

import pytest
from testkit.small_disk import small_disk
from testkit.waiting import wait_until
from testkit.worker_runs import events, names, queue_run, start_worker, status, window_count

from cliffwatch.app.launcher import request_stop
from cliffwatch.journal import JournalReader, files
from cliffwatch.model.run_state import RunState


@pytest.mark.parametrize("name", [files.WINDOWS, files.LATENCY])
def test_windows_go_on_in_a_file_that_has_the_name(tmp_path: Path, name: str) -> None:
    journal = queue_run(tmp_path / "run", {"operations_per_second": 100}, window="500ms", phases={"soak": "10m"})
    worker = start_worker(journal)
    try:
        wait_until(lambda: window_count(journal) >= 2, "two windows")
        shutil.move(journal / name, tmp_path / name)
        wait_until(lambda: any(event.name == "file_displaced" for event in events(journal)), "the worker has noticed")
        before = window_count(journal)
        wait_until(lambda: window_count(journal) >= before + 3, "windows after it")
        request_stop(journal, False)
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.wait()
    assert status(journal).state is RunState.FINISHED
    reader = JournalReader(journal)
    windows = list(reader.windows())
    assert [window.seq for window in windows] == list(range(windows[0].seq, windows[-1].seq + 1))
    assert [event.detail for event in events(journal) if event.name == "file_displaced"] == [{"file": name}]
    assert reader.histograms(windows[-1])
    if name == files.WINDOWS:
        taken = (tmp_path / name).read_bytes().splitlines()
        assert len(taken) == windows[0].seq


def test_a_file_that_is_taken_while_the_disk_is_full_is_begun_again_once_there_is_room(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 16 << 20) as disk:
        journal = queue_run(disk.path / "run", {"operations_per_second": 100}, window="500ms", phases={"soak": "10m"})
        worker = start_worker(journal)
        try:
            wait_until(lambda: window_count(journal) >= 2, "two windows")
            disk.fill()
            (journal / files.WINDOWS).rename(disk.path / "taken")
            (journal / files.LATENCY).rename(disk.path / "taken too")
            # What has no room is not only asked for once.
            wait_until((journal / files.WINDOWS).exists, "the worker has noticed")
            time.sleep(2.0)
            assert worker.poll() is None
            disk.free()
            wait_until(lambda: window_count(journal) >= 3, "windows after it")
            request_stop(journal, False)
            assert worker.wait(60) == 0
        finally:
            worker.kill()
            worker.wait()
        reader = JournalReader(journal)
        windows = list(reader.windows())
        taken = (disk.path / "taken").read_bytes().splitlines()
        # None of those that waited is lost.
        assert [window.seq for window in windows] == list(range(len(taken), windows[-1].seq + 1))
        assert reader.histograms(windows[-1])
        said = [event.detail["file"] for event in events(journal) if event.name == "file_displaced"]
        assert files.WINDOWS in said
        assert names(journal, "gap") == []
