"""What the service knew when it accepted a run: the detail of the journal's first event.

It is kept in the journal, so that the index can be rebuilt from journals alone.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from cliffwatch.runs.specification import DurationOverrides, Workload


@dataclass(frozen=True, slots=True)
class Submission:
    """`target_key` is what two runs must not share; `request_digest` tells a repeated request from another one.

    `workload_version` is None where the workload came with the request. `replaced_durations` holds, of that version,
    the durations that the request replaced, so that the version can be read off the order too.
    """

    target_key: str
    request_digest: str
    workload_version: int | None = None
    replaced_durations: dict[str, str] = field(default_factory=dict)

    def to_detail(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_detail(cls, detail: Mapping[str, Any], target: str) -> "Submission":
        """Lenient: a journal that was not begun by the service has no such detail, and is keyed by its `target`."""
        version = detail.get("workload_version")
        return cls(
            target_key=str(detail.get("target_key", target)),
            request_digest=str(detail.get("request_digest", "")),
            workload_version=version if isinstance(version, int) else None,
            replaced_durations=dict(detail.get("replaced_durations", {})),
        )

    def original_of(self, workload: Workload) -> Workload:
        """The stored version that an order's workload was made from. Raises Problem when they do not fit together."""
        return workload.with_durations(DurationOverrides.model_validate(self.replaced_durations))
