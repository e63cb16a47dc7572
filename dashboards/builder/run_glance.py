"""First row of the dashboard "Run": is it healthy now, or how did it end?"""

from collections.abc import Iterator

from dashboards.builder.colors import FINDINGS
from dashboards.builder.parts import Panel, Query, answer, number
from dashboards.builder.promql import DRIVE, DRIVE_EXPORTER, OUTCOMES, RUN, finding_number, outcome_number, rate


def at_a_glance() -> Iterator[Panel]:
    yield number(
        "Run",
        """The run that is shown: its id. Bad: it is not the one that you mean; choose another above. Empty: not among
        the 100 newest runs.""",
        "none",
        Query(f"max by (run_id) (cliffwatch_service_run_info{{{RUN}}})", "{{run_id}}"),
        by_name=True,
        width=5,
    )
    yield answer(
        "Verdict or state",
        """How it ended, or what it does now. Bad: degraded (the target got worse), invalid (the measurement cannot be
        trusted), failed, interrupted (no worker). Empty: not among the 100 newest runs.""",
        Query(outcome_number(RUN), "outcome"),
        OUTCOMES,
        width=4,
    )
    yield number(
        "Times the baseline",
        """Latency of the newest windows by the run's baseline, of the operation and percentile that is worst. Bad: 1.5
        or more, where a cliff begins. Empty: no baseline yet, or over.""",
        "suffix:×",
        Query(f'max(cliffwatch_degradation_ratio{{{RUN}, span="fast"}})', "ratio"),
        bad_from=1.5,
        decimals=2,
        filled=True,
    )
    yield answer(
        "Finding",
        "The worst of what detection found and what lasts. Bad: any. Empty: no baseline yet, or over.",
        Query(finding_number(RUN), "finding"),
        {number: (name, color) for name, (number, color) in FINDINGS.items()},
        width=4,
    )
    yield number(
        "Alerts",
        "Alerts about the run that fire and are more than information. Bad: any. Empty: over.",
        "short",
        Query(
            f"""count(ALERTS{{alertstate="firing", severity!="info", {RUN}}})
            or 0 * max(cliffwatch_run_phase{{{RUN}}})""",
            "alerts",
        ),
        bad_from=1,
        decimals=0,
        width=3,
        filled=True,
    )
    yield number(
        "Write amplification",
        """What the drives write to their flash by what the host wrote, over the last minutes, of the drive that is
        worst. Bad: 2 or more, more than half of its work is garbage collection. Empty: no drive reports it.""",
        "suffix:×",
        Query(
            f"""max({_written("media")} / ({_written("host")} > 0))""",
            "write amplification",
        ),
        bad_from=2,
        decimals=2,
        filled=True,
    )


def _written(side: str) -> str:
    return rate(f"{DRIVE_EXPORTER}_{side}_written_bytes_total", DRIVE, "instance, device")
