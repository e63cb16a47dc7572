"""`cliffwatch run start`: build the API's run request from flags, and print the plan of a dry run."""

import re
import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from cliffwatch.base.documents import read_yaml, why_unreadable
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.units import format_size, parse_duration
from cliffwatch.cli.client import ApiClient, path_of
from cliffwatch.cli.output import answer_to, put, say
from cliffwatch.cli.paths import is_directory
from cliffwatch.model.document import Name
from cliffwatch.model.part_names import PART_NAME
from cliffwatch.model.target import DeviceTarget, DirectoryTarget, parse_target

_NAME: TypeAdapter[str] = TypeAdapter(Name)


def checked_id(run_id: str) -> str:
    """An id for a run to be started, checked here since it is a part of a URL. Raises Problem(bad_request)."""
    try:
        return _NAME.validate_python(run_id)
    except ValidationError as error:
        raise Problem(Code.BAD_REQUEST, "the run's id is not valid", faults_of(error, "--id")) from error


def workload_reference(text: str) -> str | dict[str, Any]:
    """Workload of a run request: its name (`name` or `name@version`), or the document of the YAML file at `text`."""
    if not ("/" in text or text.endswith((".yaml", ".yml"))):
        return text
    return read_document(Path(text))


def read_document(path: Path) -> dict[str, Any]:
    """Read a YAML mapping from a file. Its keys and values are not checked here. Raises Problem."""
    try:
        document = read_yaml(path)
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(Code.BAD_REQUEST, f"{path} cannot be read: {why_unreadable(error)}; correct the path") from error
    except yaml.YAMLError as error:
        raise Problem(Code.WORKLOAD_INVALID, f"{path} is not YAML: {why_unreadable(error)}") from error
    if not isinstance(document, dict):
        raise Problem(
            Code.WORKLOAD_INVALID, f"{path} does not hold a YAML mapping; a workload begins with `version: 1`"
        )
    return document


def make_known(api: ApiClient, document: dict[str, Any]) -> str | None:
    """Save the workload of a run that was started from a file. Returns a message for the user, if there is one.

    A saved workload of that name is not replaced: schedules and other people's runs refer to it.
    """
    name = str(document["name"])
    path = path_of("workloads", name)
    try:
        known = api.get(path)["document"]
    except Problem as problem:
        if problem.code is not Code.NOT_FOUND:
            raise
        body = api.put(path, document)
        return f"its workload was saved as {body['name']}"
    if known == api.post("/workloads/validate", document):
        return None
    remedy = "`cliffwatch workload add FILE` saves this one as its next version"
    return f"the run is of this file; the service has a different workload {name}; {remedy}"


#: A target after the name of its part. A path is no name: it has a slash.
_NAMED = re.compile(rf"(?P<name>{PART_NAME})=(?P<target>(?:[a-z]+:|/|\.{{1,2}}/|~/).*)", re.DOTALL)


def target_documents(texts: list[str], confirmations: list[str]) -> dict[str, Any]:
    """`target`, `more_targets` and `part_names` of a run request: `NAME=TARGET` names the target's part. The n-th
    confirmation is for the n-th device. Raises Problem."""
    named = [_NAMED.fullmatch(text) for text in texts]
    names = [None if match is None else match["name"] for match in named]
    texts = [text if match is None else match["target"] for text, match in zip(texts, named, strict=True)]
    devices = [text for text in texts if text.partition(":")[0] == "device"]
    if len(confirmations) > max(1, len(devices)):
        fault = FieldFault("--confirm", f"{len(confirmations)} are given for {len(devices)} devices; omit the others")
        raise Problem(Code.BAD_REQUEST, "a confirmation belongs to no device", [fault])
    left = iter(confirmations)
    is_lone = not devices
    first, *more = (
        target_document(text, next(left, None) if is_lone or text.partition(":")[0] == "device" else None)
        for text in texts
    )
    given = {"more_targets": more, "part_names": names if any(names) else []}
    return {"target": first} | {field: value for field, value in given.items() if value}


def target_document(text: str, confirmation: str | None) -> dict[str, Any]:
    """Target of a run request: a path alone is a directory's. A directory is made absolute from the working directory.
    Raises Problem."""
    if text.startswith("/dev/"):
        remedy = "write device:SERIAL, with a serial that `cliffwatch drive list` prints"
        fault = FieldFault(
            "--target", f"{text}: a drive is named by what stays the same when it is plugged in again; {remedy}"
        )
        raise Problem(Code.BAD_REQUEST, "the target cannot be understood", [fault])
    if text.startswith(("/", "./", "../", "~/")):
        text = f"directory:{text}"
    kind, separator, rest = text.partition(":")
    if kind == "directory" and separator and rest:
        text = f"directory:{Path(rest).expanduser().absolute()}"
    target = parse_target(text)
    if isinstance(target, DeviceTarget):
        target = target.model_copy(update={"confirmation": confirmation or ""})
    elif confirmation:
        fault = FieldFault("--confirm", "applies to devices only; omit it")
        raise Problem(Code.BAD_REQUEST, "the target is not a device", [fault])
    if isinstance(target, DirectoryTarget) and not is_directory(target.path):
        say(
            f"note: {target.path} is not a directory on this machine; the path is resolved on the service's machine",
            f"      to make it:  mkdir -p {shlex.quote(str(target.path))}",
        )
    return target.model_dump(mode="json")


def duration_overrides(**given: str | None) -> dict[str, str]:
    """Durations that were given as flags, unchanged. Raises Problem that names each flag with an invalid duration."""
    faults = []
    for name, text in given.items():
        if text is not None:
            try:
                parse_duration(text)
            except ValueError as error:
                faults.append(FieldFault("--" + name.replace("_", "-"), str(error)))
    if faults:
        raise Problem(Code.BAD_REQUEST, "a duration is not valid", faults)
    return {name: text for name, text in given.items() if text is not None}


def target_text(target: Any) -> str:
    """A target of an answer, as `--target` takes it."""
    if isinstance(target, str):
        return target
    if "bootstrap_servers" in target:
        return f"{target.get('kind')}:{','.join(target['bootstrap_servers'])}"
    if "dsn" in target:
        return f"postgres:{str(target['dsn']).removeprefix('postgresql:')}"
    what = target.get("path") or target.get("identity") or target.get("name")
    return f"{target.get('kind')}:{what}"


def print_plan(plan: dict[str, Any]) -> None:
    """Print what a run would do, for people, to stdout."""
    writes = plan.get("writes") or []
    for write in writes:
        put(f"would write  {write['path']}  {format_size(write['size_bytes'])} at most")
    total = plan.get("written_bytes")
    if not writes:
        put(f"would write  {'nothing' if total == 0 else 'no file and no drive of this machine itself'}")
    bound = "not bounded: as fast as the target takes it" if total is None else f"{format_size(total)} in the whole run"
    put(f"in all       {bound}")
    if plan.get("lasts"):
        until = datetime.now(UTC) + timedelta(seconds=plan["planned_seconds"])
        put(
            f"lasts        {plan['lasts']}"
            + ("" if plan["waits_for"] else f"; until {until:%Y-%m-%d %H:%MZ} if it starts now")
        )
    put(f"command      {shlex.join(map(str, plan.get('command') or [])) or 'none'}")
    targets = [plan.get("target"), *(plan.get("more_targets") or [])]
    for name, each in zip(plan.get("part_names") or [], targets, strict=False):
        put(f"part         {name}: {target_text(each)}")
    for drive in plan.get("drives") or []:
        put(f"drive        {drive}")
    for note in plan.get("notes") or []:
        put(f"note         {note}")
    for objection in standing_objections(plan):
        put(f"objection    {objection['message']} ({objection['code']})")
    for sentence in filter(None, plan.get("confirmations") or []):
        put(f"confirm      {sentence}")


def standing_objections(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """The safety gate's objections except a missing confirmation: a dry run prints the sentence to confirm instead."""
    return [objection for objection in plan.get("objections") or [] if objection["code"] != "confirmation_missing"]


def ask_for_confirmation(plan: dict[str, Any], sentence: str) -> str:
    """Ask the user to type the sentence that names what will be lost. Raises Problem without a terminal."""
    print_plan(plan)
    if not sys.stdin.isatty():
        raise Problem(Code.TARGET_UNSAFE, f"writing to this device must be confirmed: --confirm {sentence!r}")
    return answer_to("Everything on this device will be lost. Type the sentence after `confirm` to go on.")
