"""The stack of docker-compose.yml on a Docker engine for tests only, and calls to it as users make them."""

import json
import re
import shlex
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml
from prometheus_client.parser import text_string_to_metric_families
from testkit.checkout import ROOT
from testkit.compose.composition import EXAMPLE, FILE, services, variables
from testkit.compose.stand_ins import PROMETHEUS_IMAGE
from testkit.docker import Engine
from testkit.ports import free_port
from testkit.waiting import wait_until

HOST = "127.0.0.1"
#: Images that Compose builds, by service.
BUILT = {name: str(its["image"]) for name, its in services().items() if "build" in its}
#: Timeout for a short run, with what comes before and after it.
RUN_SECONDS = 180.0
DOCUMENTATION = [ROOT / "docs" / name for name in ("compose.md", "notifications.md")]
#: Bytes of memory that a container may lock on an engine without the capability SYS_RESOURCE.
LITTLE_LOCKED_MEMORY = "8388608"


@dataclass(slots=True)
class Stack:
    """A stack on `engine`; `directory` holds its .env, and `files` are its Compose files in order."""

    engine: Engine
    directory: Path
    files: list[Path]
    settings: dict[str, str]
    client: httpx.Client = field(default_factory=lambda: httpx.Client(trust_env=False, timeout=30))

    @property
    def compose(self) -> list[str]:
        """Command prefix that replaces `docker compose` in a command line, so that it acts on this stack."""
        files = [f"--file={path}" for path in self.files]
        return [*self.engine.compose, f"--env-file={self.directory / '.env'}", f"--project-directory={ROOT}", *files]

    def run(self, *arguments: str, stdin: str = "") -> str:
        """Run a `docker compose` command; returns its stdout. Raises AssertionError with its output when it fails."""
        done = self.attempt(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout

    def attempt(self, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*self.compose, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.directory,
            check=False,
        )

    @property
    def environment(self) -> dict[str, str]:
        of_engine = self.engine.environment
        return {name: value for name, value in of_engine.items() if not name.startswith(("CLIFFWATCH_", "PYTHON"))}

    def documented(self, beginning: str) -> str:
        """Execute the documented `docker compose` line that continues with `beginning`; returns what it prints."""
        [line] = re.findall(
            rf"^    (docker compose {re.escape(beginning)}.*?)(?: +#.*)?$", documentation(), re.MULTILINE
        )
        return self.shell(line)

    def shell(self, line: str) -> str:
        """Execute a shell line in which `docker compose` stands for this stack; returns what it prints."""
        line = line.replace("docker compose", shlex.join(self.compose))
        done = subprocess.run(
            ["bash", "-c", line],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=self.environment,
            cwd=self.directory,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout

    def inside(self, *command: str, container: str = "cliffwatch", user: str = "") -> str:
        """Execute a command in a container; returns what it prints."""
        return self.run("exec", "-T", *(["--user", user] if user else []), container, *command).strip()

    def port(self, name: str) -> int:
        return int(self.settings[f"CLIFFWATCH_{name}_PORT"])

    def get(self, name: str, path: str, **parameters: str) -> Any:
        """GET a path of a watcher; returns its JSON answer."""
        answer = self.client.get(f"http://{HOST}:{self.port(name)}{path}", params=parameters)
        return answer.raise_for_status().json()

    def query(self, promql: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("PROMETHEUS", "/api/v1/query", query=promql)["data"]["result"]
        return found

    def unhealthy_rules(self) -> list[str]:
        """Each rule that Prometheus could not evaluate the last time, or has not evaluated yet."""
        groups = self.get("PROMETHEUS", "/api/v1/rules")["data"]["groups"]
        assert groups, "it has no rules"
        return [
            f"{rule['name']}: {rule['health']} {rule.get('lastError', '')}"
            for group in groups
            for rule in group["rules"]
            if rule["health"] != "ok"
        ]

    def failed_evaluations(self) -> dict[str, float]:
        """Number of failed rule evaluations since Prometheus started, by group; only groups with failures."""
        text = self.client.get(f"http://{HOST}:{self.port('PROMETHEUS')}/metrics").text
        return {
            sample.labels["rule_group"]: sample.value
            for family in text_string_to_metric_families(text)
            if family.name == "prometheus_rule_evaluation_failures"
            for sample in family.samples
            if sample.value
        }

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the service's API with its first token; returns the JSON answer."""
        answer = self.client.request(
            method,
            f"http://{HOST}:{self.port('LISTEN')}/api/v1{path}",
            json=body,
            headers={"Authorization": f"Bearer {self.token}"},
        )
        assert answer.is_success, answer.text
        return answer.json()

    def is_ready(self) -> bool:
        """Whether the service reports at /readyz that it is ready."""
        try:
            return self.client.get(f"http://{HOST}:{self.port('LISTEN')}/readyz").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    @property
    def token(self) -> str:
        known = self.directory / "token"
        if not known.exists():
            [address] = re.findall(r"`docker compose (exec cliffwatch cat \S+)`", documentation())
            known.write_text(self.run("exec", "-T", *shlex.split(address)[1:]).strip(), encoding="utf-8")
        return known.read_text(encoding="utf-8")

    def begin(self, run_id: str, workload: dict[str, Any], target: dict[str, Any]) -> None:
        document = {"version": 1, "name": run_id, "window": "1s"} | workload
        self.api("PUT", f"/runs/{run_id}", {"workload": document, "target": target})

    def events(self, run_id: str, **wanted: str) -> list[dict[str, Any]]:
        """The run's events whose fields have the values `wanted`."""
        items = self.api("GET", f"/runs/{run_id}/events?limit=500")["items"]
        return [event for event in items if wanted.items() <= event.items()]

    def windows(self, run_id: str) -> list[int]:
        """Sequence numbers of the run's windows."""
        return [window["seq"] for window in self.api("GET", f"/runs/{run_id}/windows?limit=500")["items"]]

    def wait_finished(self, run_id: str, seconds: float = RUN_SECONDS) -> dict[str, Any]:
        """Wait until the run is finished; returns its report."""
        run: dict[str, Any] = {}

        def is_over() -> bool:
            time.sleep(0.5)
            run.update(self.api("GET", f"/runs/{run_id}"))
            return bool(run["state"] == "finished")

        wait_until(is_over, lambda: run, seconds)
        report: dict[str, Any] = self.api("GET", f"/runs/{run_id}/report")
        return report

    def containers(self) -> dict[str, dict[str, Any]]:
        """Output of `docker inspect` for each container, by service."""
        identifiers = self.run("ps", "--all", "--quiet").split()
        inspected = json.loads(self.engine.run("inspect", *identifiers)) if identifiers else []
        return {one["Config"]["Labels"]["com.docker.compose.service"]: one for one in inspected}

    def states(self) -> dict[str, str]:
        """State of each container by service: health where it has a health check, else its status or exit status."""
        found = {}
        for name, one in self.containers().items():
            state = one["State"]
            health = state.get("Health", {}).get("Status")
            found[name] = health or (state["Status"] if state["Running"] else f"exited {state['ExitCode']}")
        return found

    def wait_healthy(self) -> None:
        def is_well() -> bool:
            time.sleep(0.5)
            states = self.states()
            return states.pop("configuration") == "exited 0" and set(states.values()) == {"healthy"}

        wait_until(is_well, lambda: f"{self.states()}\n{self.logs()}")

    def logs(self) -> str:
        return self.attempt("logs", "--no-color", "--tail=15").stdout[-6000:]


@contextmanager
def stack(engine: Engine, directory: Path, files: Sequence[Path] = (FILE,), **settings: str) -> Iterator[Stack]:
    """Configure a stack without starting it; when the block ends, its containers and volumes are removed."""
    # Images of an earlier commit are removed, so that `up` builds; their layers are kept.
    engine.run("image", "rm", "--force", *BUILT.values())
    ports = {name: str(free_port()) for name in variables() if name.endswith("_PORT")}
    images = {"CLIFFWATCH_PROMETHEUS_IMAGE": PROMETHEUS_IMAGE}
    given = ports | images | _locked_memory() | {"COMPOSE_PROJECT_NAME": directory.name} | settings
    (directory / ".env").write_text(_filled_in(given), encoding="utf-8")
    # The engine has no bridge network, so builds use this machine's network too.
    changes = directory / "docker-compose.override.yml"
    through_host = {name: {"build": {"network": "host"}} for name in BUILT}
    changes.write_text(yaml.safe_dump({"services": through_host}), encoding="utf-8")
    described = Stack(engine, directory, [*files, changes], given)
    try:
        yield described
    except Exception as error:
        error.add_note(described.logs())
        raise
    finally:
        described.client.close()
        described.run("down", "--volumes", "--timeout=10")


def _filled_in(settings: dict[str, str]) -> str:
    """Text of .env.example with these settings filled in. Raises AssertionError for a setting that the file lacks."""
    text = EXAMPLE.read_text(encoding="utf-8")
    for name, value in settings.items():
        text, found = re.subn(rf"^#?{name}=.*$", f"{name}={value}", text, flags=re.MULTILINE)
        assert found == 1, f"{EXAMPLE} does not show {name}"
    return text


def _locked_memory() -> dict[str, str]:
    """Setting of a lower locked-memory limit (docs/compose.md) where the limit cannot be raised; empty elsewhere."""
    asked = ["prlimit", "--memlock=unlimited:unlimited", "true"]
    may = subprocess.run(asked, capture_output=True, check=False).returncode == 0
    return {} if may else {"CLIFFWATCH_LOCKED_MEMORY": LITTLE_LOCKED_MEMORY}


def documentation() -> str:
    """Text of the documents about containers."""
    return "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTATION)
