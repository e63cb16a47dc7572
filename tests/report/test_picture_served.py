"""report.png as the service gives it: drawn once for each report, for every client and in every state of the disk."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from testkit.recorded_runs import JournalPlan, make_journal
from tests.api.harness import Api, serving

from cliffwatch.base.errors import Code, Problem
from cliffwatch.journal import files
from cliffwatch.model.settings import read_settings
from cliffwatch.report.build import build, write
from cliffwatch.report.picture.process import picture_of

PNG = b"\x89PNG\r\n\x1a\n"
PLAN = JournalPlan(windows=3)


@pytest.fixture
def reported(tmp_path: Path) -> Path:
    directory = make_journal(tmp_path / PLAN.run_id, PLAN)
    write(directory, build(directory))
    return directory


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared, since the list of the machine's fonts takes a second to make."""
    return tmp_path_factory.mktemp("cache") / "matplotlib"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


def left_over(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir() if path.name.startswith(".")]


def test_the_service_draws_it_when_it_is_asked_for(tmp_path: Path) -> None:
    with serving(read_settings(state_directory=tmp_path)) as api:
        directory = make_journal(api.settings.runs_directory / PLAN.run_id, PLAN)
        api.index(PLAN.run_id)
        early = api.get(f"/runs/{PLAN.run_id}/report.png")
        assert (early.status_code, early.json()["code"]) == (409, "report_not_ready")
        write(directory, build(directory))
        picture = api.get(f"/runs/{PLAN.run_id}/report.png")
        assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
        assert picture.content.startswith(PNG)
        assert on_page(api) == picture.content
        absent = api.get("/runs/nothing/report.png")
        assert (absent.status_code, absent.json()["code"]) == (404, "not_found")
        assert api.client.get(f"/api/v1/runs/{PLAN.run_id}/report.png").status_code == 401


def on_page(api: Api) -> bytes:
    """The same for a user who logged in with a browser."""
    origin = {"Origin": str(api.client.base_url).rstrip("/")}
    api.client.post("/login", data={"token": api.tokens["read"]}, headers=origin)
    answer = api.client.get(f"/runs/{PLAN.run_id}/report.png")
    assert answer.headers["content-type"] == "image/png"
    return answer.content


def test_it_is_drawn_once_and_again_when_there_is_another_report(reported: Path, cache: Path) -> None:
    first = picture_of(reported, cache)
    picture = reported / files.REPORT_PNG
    assert picture.read_bytes() == first
    inode = picture.stat().st_ino
    assert picture_of(reported, cache) == first
    assert picture.stat().st_ino == inode
    order = reported / files.ORDER
    order.write_text(order.read_text().replace(PLAN.run_id, "another"))
    write(reported, build(reported))
    # Also when the clock was set back in between.
    os.utime(reported / files.REPORT_JSON, ns=(1, 1))
    assert picture_of(reported, cache) != first
    assert picture.stat().st_ino != inode


def test_two_who_ask_at_once_get_the_same_picture_drawn_once(
    reported: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[list[str]] = []
    run = subprocess.run

    def counted(command: list[str], **options: object) -> object:
        drawn.append(command)
        return run(command, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", counted)
    with ThreadPoolExecutor(3) as askers:
        pictures = list(askers.map(lambda _: picture_of(reported, cache), range(3)))
    assert len(set(pictures)) == 1
    assert len(drawn) == 1
    assert left_over(reported) == []


def fill(path: Path) -> None:
    """Until its disk takes nothing more."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


def test_a_full_disk_keeps_no_picture_but_it_is_served(small_disk: Path, cache: Path) -> None:
    directory = make_journal(small_disk / PLAN.run_id, PLAN)
    (directory / files.REPORT_JSON).write_text("{}")
    fill(small_disk / "filling")
    assert picture_of(directory, cache).startswith(PNG)
    assert not (directory / files.REPORT_PNG).exists()
    assert left_over(directory) == []


def test_a_picture_is_served_from_a_disk_that_only_reads(small_disk: Path, cache: Path) -> None:
    directory = make_journal(small_disk / PLAN.run_id, PLAN)
    (directory / files.REPORT_JSON).write_text("{}")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert picture_of(directory, cache).startswith(PNG)


def test_no_place_for_the_list_of_fonts_is_a_problem_that_names_it(reported: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Problem, match=r"cannot be drawn.*file/matplotlib") as raised:
        picture_of(reported, tmp_path / "file" / "matplotlib")
    assert raised.value.code is Code.INTERNAL


def test_a_process_that_cannot_draw_is_reported(reported: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache.parent / "broken").mkdir(exist_ok=True)
    (cache.parent / "broken" / "matplotlib.py").write_text("raise RuntimeError('no such library')\n")
    monkeypatch.setenv("PYTHONPATH", str(cache.parent / "broken"))
    with pytest.raises(Problem, match=r"cannot be drawn: RuntimeError: no such library \(status 1\)") as raised:
        picture_of(reported, cache)
    assert raised.value.code is Code.INTERNAL
    assert not (reported / files.REPORT_PNG).exists()
