"""A wheel carries all that the program needs, and what must go with what it carries."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest
from testkit.checkout import PROGRAMS, ROOT, tracked
from tests.install.wheels import built_wheel

from cliffwatch.base import resources
from cliffwatch.base.programs import DRIVE, LOAD
from cliffwatch.web.static_files import FILES

PACKAGES = {"cliffwatch": ROOT / "service", "cliffwatch_drive_exporter": ROOT / "exporters" / "drive"}
RESOURCES = {name: value for name, value in vars(resources).items() if name.isupper() and not name.startswith("_")}


@pytest.fixture(scope="module")
def wheel() -> Iterator[ZipFile]:
    with ZipFile(built_wheel()) as archive:
        yield archive


def content(wheel: ZipFile, ending: str) -> bytes:
    """Of the one file whose name ends so."""
    [name] = [name for name in wheel.namelist() if name.endswith(ending)]
    return wheel.read(name)


@pytest.mark.parametrize("place", RESOURCES.values(), ids=RESOURCES.keys())
def test_resources_read_by_the_service_are_in_the_wheel(wheel: ZipFile, place: Path) -> None:
    files = [path for path in tracked(str(place.relative_to(ROOT))) if "tests" not in path.relative_to(ROOT).parts]
    if place == resources.PROBE_DIRECTORY:
        # What builds the probe stays in the checkout; only what says whether it can run is asked for.
        files = [place / "check"]
    assert files
    for path in files:
        assert wheel.read(f"cliffwatch/resources/{path.relative_to(ROOT)}") == path.read_bytes()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_of_a_package_is_inside_but_for_what_only_fetches_libraries(wheel: ZipFile, package: str) -> None:
    fetches = re.compile(r"web/assets/(package.*\.json|\.npmrc)$")
    files = [path for path in tracked(str(PACKAGES[package] / package)) if not fetches.search(str(path))]
    named = {str(path.relative_to(PACKAGES[package])): path for path in files}
    assert {name: wheel.read(name) == path.read_bytes() for name, path in named.items()} == dict.fromkeys(named, True)


def test_the_wheel_has_the_assets_of_the_pages_and_no_other_library_files(wheel: ZipFile) -> None:
    asked = {str(path.relative_to(ROOT / "service")) for path, _ in FILES.values()}
    assert asked <= set(wheel.namelist())
    libraries = {name for name in wheel.namelist() if "node_modules" in name and not name.endswith("/LICENSE")}
    assert libraries <= asked


def test_nothing_else_is_inside(wheel: ZipFile) -> None:
    beginnings = {name.partition("/")[0] for name in wheel.namelist()}
    assert beginnings == {*PACKAGES, f"cliffwatch-{version()}.dist-info", f"cliffwatch-{version()}.data"}
    assert [name for name in wheel.namelist() if "/tests/" in name or name.endswith(".pyc")] == []


@pytest.mark.parametrize("program", [DRIVE, LOAD])
def test_a_program_is_installed_as_one_starts_and_names_no_path_of_the_machine_that_built_it(
    wheel: ZipFile, program: str, tmp_path: Path
) -> None:
    [entry] = [entry for entry in wheel.infolist() if entry.filename.endswith(f".data/scripts/{program}")]
    assert entry.external_attr >> 16 & 0o111
    started = tmp_path / program
    started.write_bytes(wheel.read(entry))
    started.chmod(0o755)
    said = subprocess.run([started, "--version"], check=True, capture_output=True, text=True).stdout
    assert said == f"{program} {version()}\n"
    for place in (str(ROOT), os.path.expanduser("~/.cargo")):  # noqa: PTH111 # compared as text
        assert place.encode() not in started.read_bytes()


def test_its_name_says_the_oldest_c_library_that_has_all_that_its_programs_ask_for(wheel: ZipFile) -> None:
    asked = {
        int(found) for program in (DRIVE, LOAD) for found in re.findall(r"GLIBC_2\.(\d+)", symbols(PROGRAMS / program))
    }
    assert wheel.filename is not None
    [promised] = re.findall(r"-manylinux_2_(\d+)_", wheel.filename)
    assert int(promised) == max(asked)
    assert f"Tag: py3-none-manylinux_2_{promised}_" in content(wheel, ".dist-info/WHEEL").decode()
    assert int(promised) <= 36, "Debian 12 has 2.36"


def symbols(program: Path) -> str:
    return subprocess.run(["objdump", "-T", program], check=True, capture_output=True, text=True).stdout


def test_licences_and_bill_of_materials_have_every_crate_that_a_program_is_linked_with(wheel: ZipFile) -> None:
    """By what the programs themselves hold: Cargo's own list of a program's crates is what makes the documents."""
    bill = json.loads(content(wheel, ".dist-info/sboms/cliffwatch.cdx.json"))
    named = {(part["name"], part["version"]): part for part in bill["components"]}
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    linked = {
        found
        for program in (DRIVE, LOAD)
        for found in re.findall(rb"/([a-z0-9_-]+-\d+\.\d+\.\d+[^/]*)/src/", (PROGRAMS / program).read_bytes())
    }
    crates = [package for package in locked if f"{package['name']}-{package['version']}".encode() in linked]
    assert len(crates) > 30, "their panics name them"
    licences = content(wheel, "THIRD-PARTY-LICENSES.txt").decode()
    for crate in crates:
        part = named[crate["name"], crate["version"]]
        assert part["hashes"] == [{"alg": "SHA-256", "content": crate["checksum"]}]
        [expression] = [licence["expression"] for licence in part["licenses"]]
        assert f"\n{crate['name']} {crate['version']}: {expression}\n" in licences
    assert {"htmx.org", "uplot"} <= {name for name, _ in named}


def test_it_is_the_same_wheel_when_it_is_built_again(wheel: ZipFile) -> None:
    assert wheel.filename is not None
    before = Path(wheel.filename).read_bytes()
    assert built_wheel().read_bytes() == before


def test_it_has_the_version_of_the_programs_and_the_licence(wheel: ZipFile) -> None:
    metadata = message_from_bytes(content(wheel, ".dist-info/METADATA"))
    assert (metadata["Version"], metadata["License-Expression"]) == (version(), "Apache-2.0")
    assert "LICENSE" in metadata.get_all("License-File", [])


def version() -> str:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    return str(workspace["package"]["version"])


def test_a_wheel_without_programs_is_refused_in_words(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "CLIFFWATCH_WHEEL_PARTS"}
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "make wheel" in done.stderr
