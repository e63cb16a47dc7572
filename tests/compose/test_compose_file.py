"""The Compose file is valid, pinned, on loopback, and gives no container more than it needs."""

import re
from typing import Any

import pytest
import yaml
from deploy.supervise import WORKERS_GRACE_SECONDS
from testkit.checkout import ROOT
from testkit.compose.composition import (
    EXAMPLE,
    FILE,
    IN_PROFILES,
    PROFILES,
    STACK,
    command,
    configuration,
    mounts,
    published,
    seconds,
    services,
    variables,
)

ALL = sorted(services())
#: What a container may have beyond nothing, and only in a profile of its own.
CAPABILITIES = {"ebpf-exporter": {"BPF", "PERFMON"}, "drive-exporter": {"SYS_ADMIN"}}
#: Those that write beside their volumes, into their own image.
WRITING = {"kafka", "redpanda"}
LISTENS = re.compile(r"--web\.listen-address=(.*):\d+")


def service(name: str) -> dict[str, Any]:
    return services()[name]


@pytest.mark.parametrize("profile", PROFILES)
def test_it_is_valid_and_a_profile_adds_its_service(profile: str) -> None:
    # Older clients print the services of all profiles.
    found = configuration(profile)["services"]
    started = {name for name, its in found.items() if profile in its.get("profiles", [profile])}
    added = IN_PROFILES.get(profile, profile)
    assert started == set(STACK).difference(IN_PROFILES.values()) | {added}


def test_it_names_no_version_of_the_format() -> None:
    assert "version" not in yaml.safe_load(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ALL)
def test_images_are_pinned(name: str) -> None:
    image = service(name)["image"]
    repository, _, tag = image.rpartition(":")
    assert repository
    is_own = "build" in service(name) or image == service("cliffwatch")["image"]
    assert tag == "local" if is_own else re.search(r"\d+\.\d+\.\d+|\d+\.\d+-", tag)


@pytest.mark.parametrize("name", ALL)
def test_nothing_can_be_reached_from_other_machines(name: str) -> None:
    its = service(name)
    assert set(published(its)) <= {"127.0.0.1"}
    if name not in STACK:
        assert "network_mode" not in its
        return
    assert (its["network_mode"], published(its)) == ("host", [])
    if name == "gateway":
        assert its["profiles"] == ["gateway"]
        assert "--web.config.file=/etc/cliffwatch/gateway.yaml" in command(its)
        return
    texts = [*its.get("environment", {}).values(), *its.get("command", [])]
    assert not [text for text in texts if "0.0.0.0" in str(text)]  # noqa: S104 # it is looked for, not used
    if name in ("cliffwatch", "configuration"):
        assert its["environment"]["CLIFFWATCH_LISTEN_HOST"] == "127.0.0.1"
    elif name == "grafana":
        assert its["environment"]["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    else:
        assert [found[1] for argument in command(its) if (found := LISTENS.fullmatch(argument))] == ["127.0.0.1"]


@pytest.mark.parametrize("name", ALL)
def test_a_container_may_do_little(name: str) -> None:
    its = service(name)
    assert its["cap_drop"] == ["ALL"]
    assert set(its.get("cap_add", [])) == CAPABILITIES.get(name, set())
    assert its["security_opt"] == ["no-new-privileges"]
    assert not its.get("privileged")
    assert its.get("read_only", False) is (name not in WRITING)
    assert (its.get("user") == "0:0") is (name in CAPABILITIES)


def test_the_drive_exporter_reads_devices_that_the_kernel_numbers_and_no_others() -> None:
    """With SYS_ADMIN it may do what the group of a device may: memory, terminals, /dev/kvm, /dev/loop-control."""
    dynamic = range(234, 255)
    assert sorted(service("drive-exporter")["device_cgroup_rules"]) == [f"c {major}:* r" for major in dynamic]
    assert [name for name in ALL if "devices" in service(name) or "device_cgroup_rules" in service(name)] == [
        "drive-exporter"
    ]


def test_the_probe_looks_for_no_collector_of_traces() -> None:
    assert service("ebpf-exporter")["environment"]["OTEL_TRACES_EXPORTER"] == "none"


@pytest.mark.parametrize("name", ALL)
def test_host_paths_are_mounted_read_only_and_the_docker_socket_is_not_mounted(name: str) -> None:
    for source, target, read_only in mounts(service(name)):
        assert "docker.sock" not in source
        assert read_only or not source.startswith(("/", ".")), f"{source} at {target}"


def test_nothing_is_mounted_from_the_repository() -> None:
    """Its modes are those of the user who checked it out, and a container's user is another."""
    assert [source for name in ALL for source, _, _ in mounts(service(name)) if source.startswith(str(ROOT))] == []


@pytest.mark.parametrize("name", ALL)
def test_images_built_here_are_never_pulled(name: str) -> None:
    is_own = service(name)["image"].endswith(":local")
    assert service(name).get("pull_policy") == ("never" if is_own else None)


def test_the_service_may_lock_the_buffers_that_a_load_registers() -> None:
    assert service("cliffwatch")["ulimits"]["memlock"] == -1
    # An engine without SYS_RESOURCE cannot raise a limit, and starts no container that asks for it.
    lower = configuration(CLIFFWATCH_LOCKED_MEMORY="8388608")["services"]["cliffwatch"]
    assert lower["ulimits"]["memlock"] == 8388608


def test_every_volume_is_named() -> None:
    document = configuration(*PROFILES)
    used = {source for name in ALL for source, _, _ in mounts(service(name)) if not source.startswith("/")}
    assert used == set(document["volumes"])


@pytest.mark.parametrize("name", [name for name in ALL if name != "configuration"])
def test_each_is_asked_whether_it_is_well(name: str) -> None:
    check = service(name)["healthcheck"]
    assert check["test"][0] in ("CMD", "CMD-SHELL")
    assert seconds(check["timeout"]) <= seconds(check["interval"])


def test_services_wait_until_their_dependencies_are_healthy_or_completed() -> None:
    conditions = {
        (name, other): need["condition"] for name in ALL for other, need in service(name).get("depends_on", {}).items()
    }
    assert conditions
    for (name, other), condition in conditions.items():
        ends = other == "configuration"
        assert condition == ("service_completed_successfully" if ends else "service_healthy"), (name, other)
        assert "profiles" not in service(other), f"{name} would wait for {other} where it is not started"


def test_a_run_has_the_time_to_end_in() -> None:
    assert seconds(service("cliffwatch")["stop_grace_period"]) > WORKERS_GRACE_SECONDS + 15


def test_every_variable_stands_in_the_example_with_its_default() -> None:
    example = dict(re.findall(r"^#?(\w+)=(.*)$", EXAMPLE.read_text(encoding="utf-8"), re.MULTILINE))
    looked_up = variables()
    assert set(looked_up) | {"COMPOSE_PROJECT_NAME"} == set(example)
    given_by_users = {"CLIFFWATCH_DATABASE_URL", "CLIFFWATCH_POSTGRES_PASSWORD", "COMPOSE_PROFILES"}
    for name, default in looked_up.items():
        assert default == ("" if name in given_by_users else example[name]), name


def test_environment_settings_reach_the_containers() -> None:
    image = "registry.example.org/prometheus:v9.9.9"
    changed = configuration(CLIFFWATCH_PROMETHEUS_PORT="19890", CLIFFWATCH_PROMETHEUS_IMAGE=image)["services"]
    assert changed["prometheus"]["image"] == image
    assert "--web.listen-address=127.0.0.1:19890" in changed["prometheus"]["command"]
    assert "--web.external-url=http://127.0.0.1:19890" in changed["prometheus"]["command"]
    assert "--web.external-url=http://127.0.0.1:9893" in changed["alertmanager"]["command"]
    assert changed["grafana"]["environment"]["CLIFFWATCH_PROMETHEUS_URL"] == "http://127.0.0.1:19890"
    assert changed["configuration"]["environment"]["CLIFFWATCH_PROMETHEUS_PORT"] == "19890"
    assert changed["cliffwatch"]["environment"]["CLIFFWATCH_PROMETHEUS_PORT"] == "19890"
