"""What is asked for: a workload (what to do, with no host in it), a target (where), and an order (one run of it)."""

import re
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

from cliffwatch.detect.limits import parse_limit
from cliffwatch.detect.steady import ROUNDS as STEADY_ROUNDS
from cliffwatch.documents import load_yaml, readable_yaml, why_unreadable
from cliffwatch.errors import Code, FieldFault, Problem
from cliffwatch.runs.faults import NAME_PATTERN, faults_of
from cliffwatch.suggestion import did_you_mean
from cliffwatch.units import Duration, format_duration

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
DAY_SECONDS = 86_400.0


class Strict(BaseModel):
    """A document in which an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Steady(Strict):
    """How long the warm-up goes on at most until the drive is steady, and how long a round of SNIA's rule is."""

    maximum: Annotated[Duration, Field(gt=0, le=7 * DAY_SECONDS)]
    round: Annotated[Duration, Field(ge=1, le=DAY_SECONDS)] = 60.0

    @model_validator(mode="after")
    def _rounds_fit(self) -> "Steady":
        if self.maximum < self.round * STEADY_ROUNDS:
            raise ValueError(
                f"`maximum` is {format_duration(self.maximum)}, less than {STEADY_ROUNDS} rounds of "
                f"{format_duration(self.round)}; make it longer or `round` shorter"
            )
        return self


class Phases(Strict):
    """How long each timed phase lasts. Preparing comes before them and takes as long as it takes."""

    warm_up: Annotated[Duration, Field(ge=0, le=7 * DAY_SECONDS)] = 0.0
    steady: Steady | None = None
    baseline: Annotated[Duration, Field(ge=0, le=7 * DAY_SECONDS)] = 0.0
    soak: Annotated[Duration, Field(gt=0, le=90 * DAY_SECONDS)]
    cool_down: Annotated[Duration, Field(ge=0, le=DAY_SECONDS)] = 0.0

    @property
    def load_seconds(self) -> float:
        """How long the engine makes load."""
        return self.longest_warm_up + self.baseline + self.soak

    @property
    def longest_warm_up(self) -> float:
        """How long the warm-up lasts when the drive does not become steady before."""
        return self.warm_up + (self.steady.maximum if self.steady else 0.0)


#: Jobs of the stack itself; their series mean what our rules take them for.
OWN_JOBS = frozenset({"alertmanager", "drive", "ebpf", "node", "prometheus", "workload"})
OWN_JOB_PREFIX = "cliffwatch"
SCRAPE_TARGETS_LIMIT = 50
#: More limits than this in a workload are a mistake.
LIMITS_LIMIT = 50
#: What the kernel takes.
_PATH_LIMIT = 4096
_HOST_AND_PORT = re.compile(
    r"([A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|\[[0-9a-fA-F:.]{2,45}\]):([1-9][0-9]{0,4})"
)


def _address(text: str) -> str:
    """The text, where it is `host:port`. Raises ValueError with what would be right."""
    match = _HOST_AND_PORT.fullmatch(text)
    if match is None or int(match[3]) > 65_535:
        raise ValueError(f"{text[:80]!r} is not an address; write host:port, such as broker-1.example.org:9092")
    return text


class ScrapeTargets(Strict):
    """Metrics that belong to the workload, such as a broker's: Prometheus scrapes them while a run of it is live."""

    job: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]{0,62}$")]
    targets: Annotated[list[str], Field(min_length=1, max_length=10 * SCRAPE_TARGETS_LIMIT)]
    path: Annotated[str, Field(pattern=r"^/[A-Za-z0-9._~/-]{0,254}$")] = "/metrics"

    @field_validator("job")
    @classmethod
    def _job_is_not_ours(cls, job: str) -> str:
        if job in OWN_JOBS or job.startswith(OWN_JOB_PREFIX):
            raise ValueError(f"{job!r} is a job of the stack itself; take another name, such as broker")
        return job

    @field_validator("targets")
    @classmethod
    def _targets_are_addresses(cls, targets: list[str]) -> list[str]:
        return [_address(target) for target in targets]


class Workload(Strict):
    """What to do. `load` belongs to the engine, which validates it (see cliffwatch.engines)."""

    version: Literal[1]
    name: Name
    description: Annotated[str, Field(max_length=10_000)] = ""
    engine: Annotated[str, Field(max_length=100)]
    window: Annotated[Duration, Field(ge=0.1, le=60)] = 10.0
    phases: Phases
    on_interruption: Literal["resume", "end"] = "resume"
    engine_restarts: Annotated[int, Field(ge=0, le=100)] = 5
    stop_grace: Annotated[Duration, Field(ge=1, le=3600)] = 60.0
    free_space_reserve_ratio: Annotated[float, Field(ge=0, lt=1)] = 0.05
    load: dict[str, Any] = {}
    scrape: Annotated[list[ScrapeTargets], Field(max_length=SCRAPE_TARGETS_LIMIT)] = []
    limits: Annotated[list[str], Field(max_length=LIMITS_LIMIT)] = []

    @field_validator("limits")
    @classmethod
    def _limits_are_understood(cls, limits: list[str]) -> list[str]:
        found = [parse_limit(limit).text for limit in limits]
        twice = next((limit for index, limit in enumerate(found) if limit in found[:index]), None)
        if twice is not None:
            raise ValueError(f"{twice!r} is there twice; remove one")
        return found

    @field_validator("scrape")
    @classmethod
    def _scrapes_are_bounded(cls, scrape: list[ScrapeTargets]) -> list[ScrapeTargets]:
        count = sum(len(entry.targets) for entry in scrape)
        if count > SCRAPE_TARGETS_LIMIT:
            raise ValueError(f"{count} targets in all; at most {SCRAPE_TARGETS_LIMIT} are scraped for a run")
        return scrape

    @model_validator(mode="after")
    def _windows_fit(self) -> "Workload":
        steady = self.phases.steady
        if steady is not None and steady.round < self.window:
            raise ValueError(
                f"a round of `phases.steady` lasts {format_duration(steady.round)}, less than one window of "
                f"{format_duration(self.window)}; make `round` longer or `window` shorter"
            )
        if self.phases.load_seconds < self.window:
            raise ValueError(
                f"the phases last {format_duration(self.phases.load_seconds)} in all, less than one window of "
                f"{format_duration(self.window)}; make `phases.soak` longer or `window` shorter"
            )
        return self

    @model_validator(mode="after")
    def _limits_fit(self) -> "Workload":
        judged_seconds = self.phases.baseline + self.phases.soak
        for text in self.limits:
            over_seconds = parse_limit(text).over_seconds
            if over_seconds is None:
                continue
            if over_seconds < self.window:
                raise ValueError(
                    f"limits: {text!r} is about less than one window of {format_duration(self.window)}; make its span "
                    "longer"
                )
            if over_seconds > judged_seconds:
                raise ValueError(
                    f"limits: {text!r} is about more than the {format_duration(judged_seconds)} of baseline and soak; "
                    "make its span shorter or `phases.soak` longer"
                )
        return self

    def with_durations(self, durations: "DurationOverrides") -> "Workload":
        """The same workload with some durations replaced. Raises Problem when they no longer fit together."""
        given = durations.model_dump(mode="json", exclude_none=True)
        document = self.model_dump(mode="json")
        document |= {"window": given.pop("window", document["window"])}
        document["phases"] |= given
        return workload_from(document)


class DurationOverrides(Strict):
    """The durations that whoever starts a run may set without writing a new workload."""

    window: Duration | None = None
    warm_up: Duration | None = None
    baseline: Duration | None = None
    soak: Duration | None = None
    cool_down: Duration | None = None


class DirectoryTarget(Strict):
    """Fresh files in a directory of their own below `path`."""

    kind: Literal["directory"] = "directory"
    path: Annotated[str, Field(pattern=r"^/", max_length=_PATH_LIMIT)]

    def __str__(self) -> str:
        return f"directory:{self.path}"


class DeviceTarget(Strict):
    """A whole block device, named by serial, WWN or (a loop device) backing file. Everything on it is lost.

    `confirmation` is the sentence that the dry run prints, typed by whoever starts the run.
    """

    kind: Literal["device"] = "device"
    identity: Annotated[str, Field(min_length=1, max_length=_PATH_LIMIT)]
    confirmation: Annotated[str, Field(max_length=_PATH_LIMIT)] = ""

    def __str__(self) -> str:
        return f"device:{self.identity}"


class SyntheticTarget(Strict):
    """No drive at all: what the synthetic engine pretends to load."""

    kind: Literal["synthetic"] = "synthetic"
    name: Name

    def __str__(self) -> str:
        return f"synthetic:{self.name}"


AbsolutePath = Annotated[str, Field(pattern=r"^/", max_length=_PATH_LIMIT)]


class BrokerTarget(Strict):
    """Brokers that speak the Kafka protocol; one of `bootstrap_servers` that answers is enough.

    Where brokers are on this machine, `data_directories` says where they keep their data: nothing is written there by
    the run, but the drives below are watched.
    """

    kind: Literal["broker"] = "broker"
    bootstrap_servers: Annotated[list[str], Field(min_length=1, max_length=100)]
    data_directories: Annotated[list[AbsolutePath], Field(max_length=100)] = []

    @field_validator("bootstrap_servers")
    @classmethod
    def _servers_are_addresses(cls, servers: list[str]) -> list[str]:
        return [_address(server) for server in servers]

    def __str__(self) -> str:
        directories = f"@{','.join(self.data_directories)}" if self.data_directories else ""
        return f"broker:{','.join(self.bootstrap_servers)}{directories}"


AnyTarget = DirectoryTarget | DeviceTarget | SyntheticTarget | BrokerTarget
Target = Annotated[AnyTarget, Field(discriminator="kind")]
_TARGET: TypeAdapter[AnyTarget] = TypeAdapter(Target)


def bootstrap_servers_of(target: AnyTarget) -> tuple[str, ...]:
    """Where a target's brokers are found; none for a target without brokers."""
    return tuple(target.bootstrap_servers) if isinstance(target, BrokerTarget) else ()


#: Kinds of target whose bytes cannot be held against a drive's.
WITHOUT_DRIVE = frozenset({"synthetic", "broker"})


class RunOrder(Strict):
    """One run as it was asked for; order.json of its journal."""

    run_id: Name
    workload: Workload
    target: Target
    created_at: float
    created_by: str
    schedule_id: str | None = None


def parse_workload(text: str) -> Workload:
    """A workload from YAML. Raises Problem(workload_invalid) that names every field at fault.

    The engine's own part (`load`) is checked by `cliffwatch.engines.registry.check_load`.
    """
    try:
        document = load_yaml(text)
    except yaml.YAMLError as error:
        raise Problem(Code.WORKLOAD_INVALID, f"the workload is not YAML: {why_unreadable(error)}") from error
    if not isinstance(document, dict):
        raise Problem(Code.WORKLOAD_INVALID, "the workload is not a YAML mapping; it begins with `version: 1`")
    return workload_from(document)


def workload_from(document: dict[str, Any]) -> Workload:
    """A workload from a parsed document. Raises Problem(workload_invalid)."""
    try:
        return Workload.model_validate(document)
    except ValidationError as error:
        raise Problem(Code.WORKLOAD_INVALID, "the workload is not valid", faults_of(error, model=Workload)) from error


def format_workload(workload: Workload) -> str:
    """YAML that `parse_workload` reads back to the same workload."""
    return readable_yaml(workload.model_dump(mode="json"))


def parse_target(text: str) -> AnyTarget:
    """A target from `directory:/path`, `device:SERIAL`, `synthetic:NAME` or `broker:HOST:PORT,…@/data,…`.

    Raises Problem(bad_request).
    """
    kind, _, rest = text.partition(":")
    body: dict[str, Any] = {"kind": kind}
    if kind == "broker":
        servers, _, directories = rest.partition("@")
        body |= {
            "bootstrap_servers": servers.split(","),
            # Only before a slash: a comma may be part of a directory's name.
            "data_directories": re.split(r",(?=/)", directories) if directories else [],
        }
    elif kind in _TARGET_FIELDS and rest:
        body[_TARGET_FIELDS[kind]] = rest
    else:
        *first, final = TARGET_FORMS.values()
        message = f"{text!r} is not a target; write {', '.join(first)} or {final}{did_you_mean(kind, TARGET_FORMS)}"
        raise Problem(Code.BAD_REQUEST, "the target cannot be understood", [FieldFault("target", message)])
    try:
        return _TARGET.validate_python(body)
    except ValidationError as error:
        raise Problem(Code.BAD_REQUEST, "the target is not valid", faults_of(error, "target")) from error


_TARGET_FIELDS = {"directory": "path", "device": "identity", "synthetic": "name"}
#: How a target of each kind is written.
TARGET_FORMS = {
    "directory": "directory:/path",
    "device": "device:SERIAL",
    "synthetic": "synthetic:NAME",
    "broker": "broker:HOST:PORT",
}
