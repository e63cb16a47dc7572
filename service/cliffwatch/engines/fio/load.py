"""The `load` of a workload whose engine is fio: a preset with a few knobs, or a job."""

from functools import cached_property
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from cliffwatch.base.units import Size
from cliffwatch.engines.fio.job import JOBS_LIMIT, Section, parse_job
from cliffwatch.engines.fio.presets import PRESETS
from cliffwatch.model.document import Strict

_MEBIBYTE = 1024**2
_TEBIBYTE = 1024**4


class FioLoad(Strict):
    """Either `preset`, or `job`: ini text that passes the allow-list.

    With a preset: `jobs` clones of each of its streams, `size` of each clone's file (or region of a device) and `rate`,
    bytes a second that each clone keeps to.
    """

    preset: str | None = None
    jobs: Annotated[int, Field(ge=1, le=JOBS_LIMIT // 2)] | None = None
    size: Annotated[Size, Field(ge=_MEBIBYTE, le=100 * _TEBIBYTE)] | None = None
    rate: Annotated[Size, Field(ge=1024)] | None = None
    job: str | None = None

    @field_validator("preset")
    @classmethod
    def _preset_is_known(cls, preset: str | None) -> str | None:
        if preset is not None and preset not in PRESETS:
            raise ValueError(f"there is no preset {preset!r}; presets: {', '.join(PRESETS)}")
        return preset

    @field_validator("job")
    @classmethod
    def _job_passes(cls, job: str | None) -> str | None:
        if job is not None:
            parse_job(job)
        return job

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.preset is None) == (self.job is None):
            raise ValueError("give either `preset` or `job`")
        if self.job is not None:
            for name in ("jobs", "size", "rate"):
                if getattr(self, name) is not None:
                    raise ValueError(f"`{name}` goes with a preset; a job says it in its sections")
        return self

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """Sections of the job that fio runs, from the preset or from `job`."""
        if self.preset is not None:
            return PRESETS[self.preset].sections(self.jobs, self.size, self.rate)
        assert self.job is not None, "validated above"
        return parse_job(self.job)
