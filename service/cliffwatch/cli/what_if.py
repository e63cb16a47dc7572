"""`cliffwatch drive what-if`: simulate when the latency cliff would come and what shifts it; each answer is a band."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.programs import DRIVE, require_program
from cliffwatch.base.units import format_duration, format_size
from cliffwatch.cli.drive_settings import check_names, setting_name, typed_by_name
from cliffwatch.cli.output import Output, print_json, put, say
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.labs.what_if.answer import answer, document
from cliffwatch.labs.what_if.field_report import statements
from cliffwatch.labs.what_if.page import write_page
from cliffwatch.labs.what_if.parameters import PARAMETERS
from cliffwatch.labs.what_if.plan import Simulation, SimulationPlan, make_plan
from cliffwatch.labs.what_if.profile import read_profile
from cliffwatch.labs.what_if.simulator import Outcome, Simulator
from cliffwatch.labs.what_if.text import lines

_PAGE_SUFFIXES = (".html", ".htm")
_REPORT_EVERY_SECONDS = 1.0
_PLAIN_REPORT_EVERY_SECONDS = 10.0


def register(app: typer.Typer) -> None:
    """Add `what-if` to `cliffwatch drive`."""
    app.command("what-if")(what_if)


def what_if(
    context: typer.Context,
    profile: Annotated[
        str,
        typer.Argument(
            metavar="PROFILE",
            help="The drive and the workload: a file of settings, or the built-in `field-report`.",
        ),
    ],
    over_provisioning: Annotated[
        str | None,
        typer.Option(help="The drive's own over-provisioning, as in 7%,20%; one value if you know it. In every band."),
    ] = None,
    disorder: Annotated[
        str | None,
        typer.Option(
            help="How disorderly freed space is used again (q), as in 0.1,0.3,1; one value if you measured it."
            " In every band."
        ),
    ] = None,
    unpartitioned: Annotated[str | None, typer.Option(help="Shares left unpartitioned, as in 0,10%,20%.")] = None,
    trim: Annotated[str | None, typer.Option(help="Whether deleted segments are trimmed, as in off,on.")] = None,
    retention: Annotated[str | None, typer.Option(help="Shares of the volume retained, as in 50%,75%.")] = None,
    streams: Annotated[str | None, typer.Option(help="Segment files written at a time, as in 72,288.")] = None,
    write_size: Annotated[str | None, typer.Option(help="Sizes of one write, as in 16KiB,1MiB.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            envvar="CLIFFWATCH_DRIVE_WHAT_IF_SET",
            help="A setting of the simulator for all simulations, as in rate=0.3GB; repeatable.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds every band covers.")] = 3,
    scale: Annotated[
        int | None,
        typer.Option(min=1, help="Simulate 1/N of the drive; default: an N with which it takes a few minutes."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Simulations at a time; default: the number of processors.")
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", help="Write the plot as an HTML page to this file.")] = None,
    output: OutputOption = None,
) -> None:
    """Simulate when the latency cliff of a flash drive would come, and which parameters shift it.

    Every answer is a band over seeds and over unpublished parameters of a drive. The bands cover all values given for
    over-provisioning and disorder; of any other parameter, only the given values are compared.
    """
    session = session_of(context)
    _check_page(to)
    typed_by_name(settings or [], {"scale": scale})
    given = {
        "over-provisioning": over_provisioning,
        "disorder": disorder,
        "unpartitioned": unpartitioned,
        "trim": trim,
        "retention": retention,
        "streams": streams,
        "write-size": write_size,
    }
    plan = make_plan(
        read_profile(profile, _settings_of(settings or [])),
        {name: PARAMETERS[name].parse_list(text) for name, text in given.items() if text is not None},
        seeds=seeds,
        scale=scale,
        jobs=jobs or len(os.sched_getaffinity(0)),
    )
    _check_memory(plan)
    program = require_program(DRIVE, session.settings().state_directory)
    check_names(program, settings or [], Code.BAD_REQUEST)
    result = answer(plan, _simulate(program, plan))
    if to is not None:
        write_page(result, to)
    if session.how(output) is Output.JSON:
        reported = [{"kind": item.kind.value, "text": item.text} for item in statements(result)]
        print_json(document(result) | {"field_report": reported})
    else:
        put(*lines(result))
    if to is not None:
        say(f"{to}: the same as a page")


def _check_memory(plan: SimulationPlan) -> None:
    """Refuse a plan that does not fit into memory: its simulations, or other processes, would be killed."""
    found = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    if found is not None and plan.memory_bytes > int(found[1]) * 1024:
        message = (
            f"{plan.jobs} simulations at a time of 1/{plan.scale} of the drive need {format_size(plan.memory_bytes)} "
            f"of memory, and {format_size(int(found[1]) * 1024)} are free; write a larger --scale, or fewer --jobs"
        )
        raise _refusal("--scale", message)


def _simulate(program: Path, plan: SimulationPlan) -> Mapping[Simulation, Outcome]:
    """Run the simulations of the plan; print the expected duration and the progress to stderr."""
    count, clock = len(plan.simulations), SystemClock()
    part = f"1/{plan.scale} of the drive" if plan.scale > 1 else "the drive"
    about = format_duration(max(1, round(plan.seconds)))
    say(f"{count} simulations of {part}, {plan.jobs} at a time: about {about}. Ctrl-C ends it and leaves nothing.")
    on_terminal = sys.stderr.isatty()
    every = _REPORT_EVERY_SECONDS if on_terminal else _PLAIN_REPORT_EVERY_SECONDS
    began = reported = clock.monotonic()

    def report(done: int) -> None:
        nonlocal reported
        now = clock.monotonic()
        if now - reported < every and done < count:
            return
        reported = now
        left = format_duration(round((now - began) / done * (count - done)))
        line = f"{done} of {count}, {left} left"
        if on_terminal:
            print(f"\r{line:<40}", end="" if done < count else "\r" + " " * 40 + "\r", file=sys.stderr, flush=True)
        elif done < count:
            say(line)

    try:
        with Simulator(program) as simulator:
            return simulator.run(plan, report)
    except KeyboardInterrupt:
        say("ended; nothing was written")
        raise


def _check_page(to: Path | None) -> None:
    if to is None:
        return
    if to.suffix.lower() not in _PAGE_SUFFIXES:
        raise _refusal("--to", f"{to} does not end in .html; write a file's name such as what-if.html")
    if not to.absolute().parent.is_dir():
        raise _refusal("--to", f"{to.absolute().parent} is not a directory; make it first")


def _settings_of(pairs: list[str]) -> dict[str, str]:
    settings = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals and value):
            raise _refusal("--set", f"{pair!r} is not a setting; write NAME=VALUE, as in rate=0.3GB")
        settings[setting_name(pair)] = value.strip()
    return settings


def _refusal(field: str, message: str) -> Problem:
    return Problem(Code.BAD_REQUEST, "this cannot be simulated", [FieldFault(field, message)])
