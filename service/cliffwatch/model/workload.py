"""Workload document: what to run, independent of any host."""

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, field_validator, model_validator

from cliffwatch.base.documents import load_yaml, readable_yaml, why_unreadable
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.units import Duration, format_duration, format_length
from cliffwatch.model.address import address
from cliffwatch.model.document import Name, Strict
from cliffwatch.model.limits import limit_list, limit_text, parse_limit
from cliffwatch.model.phase import Phase, phase_words
from cliffwatch.model.steady import ROUNDS as STEADY_ROUNDS

DAY_SECONDS = 86_400.0
#: The workloads that come with the program, a YAML file each.
BUILT_IN_WORKLOADS = Path(__file__).resolve().parents[1] / "workloads"


class Steady(Strict):
    """Longest time that the warm-up waits for the drive's steady state, and length of a round of SNIA's rule."""

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
        """Seconds for which the engine makes load."""
        return self.longest_warm_up + self.baseline + self.soak

    @property
    def words(self) -> str:
        """Length of each phase that there is: `warm-up 30m, baseline 1h, soak 36h`."""
        phases = {Phase.WARM_UP: self.longest_warm_up, Phase.BASELINE: self.baseline, Phase.SOAK: self.soak}
        lengths = phases | {Phase.COOL_DOWN: self.cool_down}
        return ", ".join(f"{phase_words(name)} {format_length(length)}" for name, length in lengths.items() if length)

    @property
    def longest_warm_up(self) -> float:
        """Seconds of the warm-up if the drive does not become steady before its end."""
        return self.warm_up + (self.steady.maximum if self.steady else 0.0)


#: Prometheus jobs of Cliffwatch itself: its rules use their series, so no workload may have a job of such a name.
OWN_JOBS = frozenset({"alertmanager", "drive", "ebpf", "node", "prometheus", "workload"})
OWN_JOB_PREFIX = "cliffwatch"
SCRAPE_TARGETS_LIMIT = 50
#: More limits than this in a workload are a mistake.
LIMITS_LIMIT = 50


def _understood(limit: str) -> str:
    return parse_limit(limit).text


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
        return [address(target) for target in targets]


class Workload(Strict):
    """Workload: engine, load, phases and limits. `load` is validated by the engine (see cliffwatch.engines)."""

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
    load: dict[str, Any] = Field(default={})
    scrape: list[ScrapeTargets] = Field(default=[], max_length=SCRAPE_TARGETS_LIMIT)
    limits: Annotated[
        list[Annotated[str, BeforeValidator(limit_text), AfterValidator(_understood)]], BeforeValidator(limit_list)
    ] = Field(default=[], max_length=LIMITS_LIMIT)

    @field_validator("limits")
    @classmethod
    def _limits_differ(cls, limits: list[str]) -> list[str]:
        twice = next((limit for index, limit in enumerate(limits) if limit in limits[:index]), None)
        if twice is not None:
            raise ValueError(f"{twice!r} is there twice; remove one")
        return limits

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
    """The durations that a run may override without a new workload."""

    window: Duration | None = None
    warm_up: Duration | None = None
    baseline: Duration | None = None
    soak: Duration | None = None
    cool_down: Duration | None = None


def parse_workload(text: str) -> Workload:
    """A workload from YAML. Raises Problem(workload_invalid) that names every field at fault.

    The engine's own part (`load`) is checked by `cliffwatch.engines.registry.load_of`.
    """
    return workload_from(workload_document(text))


def workload_document(text: str) -> dict[str, Any]:
    """Parse YAML into a document, unchecked. Raises Problem(workload_invalid) where it is not a mapping."""
    try:
        document = load_yaml(text)
    except yaml.YAMLError as error:
        raise Problem(Code.WORKLOAD_INVALID, f"the workload is not YAML: {why_unreadable(error)}") from error
    if not isinstance(document, dict):
        raise Problem(Code.WORKLOAD_INVALID, "the workload is not a YAML mapping; it begins with `version: 1`")
    return document


def workload_from(document: dict[str, Any]) -> Workload:
    """A workload from a parsed document. Raises Problem(workload_invalid)."""
    try:
        return Workload.model_validate(document)
    except ValidationError as error:
        raise Problem(Code.WORKLOAD_INVALID, "the workload is not valid", faults_of(error, model=Workload)) from error


def format_workload(workload: Workload) -> str:
    """YAML that `parse_workload` reads back to the same workload."""
    return readable_yaml(workload.model_dump(mode="json"))


def workload_yaml(document: dict[str, Any]) -> str:
    """A workload as YAML for people to edit, in the order of docs/workloads.md; it parses back to the same document."""
    document = _ordered(document, Workload)
    if isinstance(document.get("phases"), dict):
        document["phases"] = _ordered(document["phases"], Phases)
    return readable_yaml(document)


def _ordered(document: dict[str, Any], model: type[Strict]) -> dict[str, Any]:
    """Mapping with the keys that the model knows first, in the model's order."""
    return {name: document[name] for name in model.model_fields if name in document} | document
