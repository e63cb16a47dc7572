"""The containers are started as the native stack starts its processes, with the same configuration."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from deploy.configure import publish
from testkit.checkout import ROOT
from testkit.compose.composition import command, mounts, services
from testkit.ports import free_address
from tests.dashboards.documents import PROVISIONING

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.resources import ALERTS_DIRECTORY
from cliffwatch.model.settings import PREFIX, Settings, read_settings
from cliffwatch.stack.components import COMPONENTS, EXPORTERS, Component
from cliffwatch.stack.launch import SCOPES, start_stack, stop_stack, token_path
from cliffwatch.stack.processes import State
from cliffwatch.store.database import open_database, upgrade
from cliffwatch.store.tokens import find_token

#: Where watchers find what is published.
PUBLISHED = "/opt/cliffwatch"
#: Natively the state directory, in containers a path; the same below it.
IN_CONTAINERS = Settings(state_directory=Path("/var/lib/cliffwatch"))
#: What a container needs besides: the host is not where it looks by itself, and rights are given up.
BESIDES = {"node-exporter": ["--path.rootfs=/host"]}


def container(component: Component) -> str:
    return component.name.replace("_", "-")


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda component: component.name)
def test_a_container_has_the_arguments_of_the_native_process(component: Component) -> None:
    its = services()[container(component)]
    native = component.arguments(IN_CONTAINERS)
    assert sorted(command(its)) == sorted({*native, *BESIDES.get(container(component), [])})


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda component: component.name)
def test_a_container_is_asked_what_the_native_process_is_asked(component: Component) -> None:
    asked = shlex.join(services()[container(component)]["healthcheck"]["test"])
    assert str(component.port(IN_CONTAINERS)) in asked
    assert component.ready_path in asked


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda component: component.name)
def test_the_state_directory_of_a_container_is_a_volume(component: Component) -> None:
    directory = str(component.directory(IN_CONTAINERS))
    paths = [argument.partition("=")[2] for argument in command(services()[container(component)])]
    if any(path.startswith(directory) for path in paths):
        volumes = {target: source for source, target, _ in mounts(services()[container(component)])}
        assert volumes[directory] == container(component)
        assert (volumes[directory], directory, False) in mounts(services()["configuration"])


def test_the_service_is_given_every_port() -> None:
    for name in ("cliffwatch", "configuration"):
        reported = services()[name]["environment"]
        for field in Settings.model_fields:
            if field.endswith("_port"):
                assert reported[PREFIX + field.upper()] == str(getattr(IN_CONTAINERS, field)), field


def test_rules_and_dashboards_are_those_of_the_image(tmp_path: Path) -> None:
    """Natively Prometheus reads the rules of the package; the container, those that the image's package has."""
    maker = services()["configuration"]
    [option] = [argument for argument in maker["entrypoint"] if argument.startswith("--publish=")]
    published = option.partition("=")[2]
    assert ("published", published, False) in mounts(maker)
    assert f"--published-at={PUBLISHED}" in maker["entrypoint"]
    for name in ("prometheus", "grafana"):
        assert ("published", PUBLISHED, True) in mounts(services()[name])
    publish(tmp_path)
    assert files_below(tmp_path / "alerts") == files_below(ALERTS_DIRECTORY)
    assert files_below(tmp_path / "dashboards/json") == files_below(ROOT / "dashboards/json")
    settings = services()["grafana"]["environment"]
    for variable, directory in (
        ("GF_PATHS_PROVISIONING", PROVISIONING),
        ("CLIFFWATCH_DASHBOARDS_DIRECTORY", ROOT / "dashboards" / "json"),
    ):
        assert settings[variable] == f"{PUBLISHED}/{directory.relative_to(ROOT)}"
        assert files_below(tmp_path / directory.relative_to(ROOT)) == files_below(directory)
    home = settings["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (ROOT / Path(home).relative_to(PUBLISHED)).is_file()


def test_a_file_removed_from_the_image_is_removed_from_the_published_configuration(tmp_path: Path) -> None:
    (tmp_path / "alerts" / "rules").mkdir(parents=True)
    (tmp_path / "alerts" / "rules" / "old.yaml").write_text("groups: []")
    publish(tmp_path)
    assert files_below(tmp_path / "alerts") == files_below(ALERTS_DIRECTORY)


def files_below(directory: Path) -> dict[str, bytes]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    assert files, directory
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    names = [name for name in Settings.model_fields if name.endswith("_port") and name != "listen_port"]
    ports = {name: int(free_address().partition(":")[2]) for name in names}
    made = read_settings(state_directory=tmp_path / "state", **ports)
    upgrade(made.database_url)
    yield made
    stop_stack(made, SystemClock())


def variables(settings: Settings) -> dict[str, str]:
    given = settings.model_dump(mode="json", exclude_none=True)
    return {PREFIX + name.upper(): str(value) for name, value in given.items()}


def configure(settings: Settings, profiles: str, *arguments: str) -> dict[str, str]:
    """What the containers are given, by path, made as in their own one."""
    done = subprocess.run(
        [sys.executable, "-m", "deploy.configure", *arguments],
        cwd=ROOT,
        env=os.environ | variables(settings) | {"COMPOSE_PROFILES": profiles},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return configurations(settings)


def configurations(settings: Settings) -> dict[str, str]:
    return {str(path): path.read_text() for path in settings.state_directory.glob("stack/*/*.yaml")}


def test_the_containers_are_given_the_configuration_of_the_native_stack(settings: Settings) -> None:
    outcomes = {outcome.component.name: outcome for outcome in start_stack(settings, SystemClock())}
    native = configurations(settings)
    assert len(native) == 2
    stop_stack(settings, SystemClock())
    # The probe is built into the state directory, so this one does without.
    assert "job_name: ebpf" not in "".join(native.values())
    assert outcomes["node_exporter"].reason == ""
    profiles = "kafka" if outcomes["drive_exporter"].state is State.WITHOUT else "kafka,nvme"
    for path in native:
        Path(path).unlink()
    assert configure(settings, profiles) == native
    of_containers = configure(settings, profiles, f"--published-at={PUBLISHED}")
    assert of_containers == {
        path: text.replace(str(ALERTS_DIRECTORY), f"{PUBLISHED}/alerts") for path, text in native.items()
    }
    assert of_containers != native


@pytest.mark.parametrize(("profile", "job"), [("ebpf", "ebpf"), ("nvme", "drive")])
def test_an_exporter_is_scraped_where_its_profile_starts_it(settings: Settings, profile: str, job: str) -> None:
    port = EXPORTERS[job].port(settings)
    scraped = re.compile(rf"job_name: {job}\n  static_configs:\n  - targets:\n    - 127\.0\.0\.1:{port}\n")
    assert scraped.search("".join(configure(settings, f"kafka,{profile}").values()))
    assert not scraped.search("".join(configure(settings, "kafka").values()))


def test_each_watcher_gets_a_token_that_the_service_knows(settings: Settings) -> None:
    configure(settings, "")
    first = {component: token_path(settings, component).read_text() for component in SCOPES}
    configure(settings, "")
    database = open_database(settings.database_url)
    try:
        with database.snapshot() as session:
            for component, scope in SCOPES.items():
                assert token_path(settings, component).read_text() == first[component], "it is not made anew"
                row = find_token(session, first[component].strip())
                assert row is not None
                assert row.scope == scope.label
    finally:
        database.close()


def test_settings_that_are_not_valid_are_named(settings: Settings) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deploy.configure"],
        cwd=ROOT,
        env=os.environ | variables(settings) | {"CLIFFWATCH_PROMETHEUS_PORT": "many"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "CLIFFWATCH_PROMETHEUS_PORT" in done.stderr
