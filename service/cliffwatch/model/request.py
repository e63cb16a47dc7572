"""Request for a run (`RunRequest`), and what the service recorded when it accepted the request (`Submission`).

A submission is the detail of the journal's first event, so that the index can be rebuilt from journals alone.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.storable import check_text
from cliffwatch.model.annotations import Labels
from cliffwatch.model.document import Strict
from cliffwatch.model.drives import Drives
from cliffwatch.model.part_names import ONLY_PART, PartName
from cliffwatch.model.target import AnyTarget, Target
from cliffwatch.model.workload import DurationOverrides, Workload

_REFERENCE = re.compile(r"([a-z0-9][a-z0-9._-]{0,62})(?:@([1-9][0-9]{0,8}))?")


def _check_workload(value: object) -> object:
    if isinstance(value, dict) or (isinstance(value, str) and _REFERENCE.fullmatch(value)):
        return check_text(value)
    raise ValueError("write the name of a workload, name@version, or a workload document")


#: Most further targets: the part of each is a process and an engine of its own.
MORE_TARGETS_LIMIT = 15
WorkloadChoice = Annotated[str | dict[str, Any], BeforeValidator(_check_workload)]


class RunRequest(Strict):
    """What to run where: a stored workload (`name`, `name@3`) or a document, a target, and durations to replace."""

    workload: WorkloadChoice
    target: Target = Field(description="where to run it")
    durations: DurationOverrides = DurationOverrides()
    more_targets: Annotated[tuple[Target, ...], Field(max_length=MORE_TARGETS_LIMIT)] = Field(
        default=(), description="further targets, each loaded beside the first by a part of its own"
    )

    labels: Labels = Field(default={}, description="labels that the run begins with")
    drives: Drives | None = Field(
        default=None, description="drives to watch instead of those below the targets: `prometheus:SELECTOR`"
    )

    part_names: tuple[PartName | None, ...] = Field(
        default=(),
        description="names of the targets' parts, in the same order; null names a part by its drive or target",
    )

    @property
    def targets(self) -> tuple[AnyTarget, ...]:
        return (self.target, *self.more_targets)

    @field_validator("target", "more_targets", "drives", mode="before")
    @classmethod
    def _text_can_be_stored(cls, value: Any) -> Any:
        return check_text(value)

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        given = [name for name in self.part_names if name is not None]
        if self.part_names and not self.more_targets:
            raise ValueError("`part_names`: a run with one target has one part, without a name; omit it")
        if len(self.part_names) > len(self.targets):
            raise ValueError(
                f"`part_names`: {len(self.part_names)} are given for {len(self.targets)} targets; omit some"
            )
        for name in given:
            if name == ONLY_PART or given.count(name) > 1:
                raise ValueError(f"`part_names`: {name!r} is taken; give each part a name of its own")
        return self

    @property
    def digest(self) -> str:
        """SHA-256 of the normalised request, in hex: requests with the same digest are the same request."""
        # Fields that earlier versions did not know count only if given: a request is repeated after an upgrade, too.
        later = {
            "more_targets": self.more_targets,
            "labels": self.labels,
            "drives": self.drives,
            "part_names": self.part_names,
        }
        body = self.model_dump(mode="json", exclude={name for name, value in later.items() if not value})
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def parse_reference(text: str) -> tuple[str, int | None]:
    """Name and version of `name` or `name@3`. Raises Problem(bad_request)."""
    match = _REFERENCE.fullmatch(text)
    if match is None:
        fault = FieldFault("workload", f"{text!r} is not the name of a workload, nor name@version")
        raise Problem(Code.BAD_REQUEST, "the workload cannot be understood", [fault])
    return match[1], int(match[2]) if match[2] else None


@dataclass(frozen=True, slots=True)
class AskedTarget:
    """Identity of a target when its run was requested. `path`: the directory that it led to; `directory`: the inode and
    birth of that directory; `blocks`: what a drive was made of. None where not known."""

    path: str | None = None
    directory: str | None = None
    blocks: str | None = None

    @classmethod
    def from_detail(cls, detail: Mapping[str, Any]) -> "AskedTarget":
        return cls(**{name: str(detail[name]) for name in cls.__slots__ if detail.get(name)})


@dataclass(frozen=True, slots=True)
class Submission:
    """What the service recorded when it accepted a request.

    `target_key` identifies what two runs must not use at the same time; `request_digest` distinguishes a repeated
    request from another one. `workload_version` is None where the workload came with the request. `replaced_durations`
    has the durations of that version that the request replaced, so that the version can be derived from order.json.
    `target_path` is the directory that a directory target led to, links resolved; `target_directory` the inode and
    birth of that directory; `target_blocks` what a device was made of when its confirmation was typed. `more_targets`
    has the same of further targets.
    """

    target_key: str
    request_digest: str
    workload_version: int | None = None
    replaced_durations: dict[str, str] = field(default_factory=dict)
    target_path: str | None = None
    target_directory: str | None = None
    target_blocks: str | None = None
    more_targets: tuple[AskedTarget, ...] = ()

    def to_detail(self) -> dict[str, Any]:
        detail = asdict(self)
        if not self.more_targets:
            del detail["more_targets"]
        return detail

    @property
    def asked(self) -> tuple[AskedTarget, ...]:
        """Identities of the parts' targets when the run was requested, in the order of the targets."""
        return (AskedTarget(self.target_path, self.target_directory, self.target_blocks), *self.more_targets)

    @classmethod
    def from_detail(cls, detail: Mapping[str, Any], target: str) -> "Submission":
        """Parse the detail of a journal's first event. If the service did not begin the journal, the key is `target`.

        Raises ValueError for a detail that no service wrote.
        """
        version, replaced = detail.get("workload_version"), detail.get("replaced_durations", {})
        if isinstance(version, int) and not 0 < version < 2**31:
            raise ValueError(f"workload_version: {version!r:.40} is no version")
        if not isinstance(replaced, Mapping):
            raise ValueError(f"replaced_durations: {replaced!r:.40} is no mapping")
        return cls(
            target_key=str(detail.get("target_key", target)),
            request_digest=str(detail.get("request_digest", "")),
            workload_version=version if isinstance(version, int) else None,
            replaced_durations=dict(replaced),
            target_path=str(detail["target_path"]) if detail.get("target_path") else None,
            target_directory=str(detail["target_directory"]) if detail.get("target_directory") else None,
            target_blocks=str(detail["target_blocks"]) if detail.get("target_blocks") else None,
            more_targets=tuple(AskedTarget.from_detail(each) for each in detail.get("more_targets", ())),
        )

    def original_of(self, workload: Workload) -> Workload:
        """The stored version that the run's workload was made from. Raises Problem when they do not fit together."""
        return workload.with_durations(DurationOverrides.model_validate(self.replaced_durations))
