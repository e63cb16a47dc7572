"""`cliffwatch workload …`: validate, save, list and print workloads."""

from pathlib import Path
from typing import Annotated

import typer

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.cli import completion
from cliffwatch.cli.client import path_of
from cliffwatch.cli.output import Column, Output, plain, print_json, print_rows, say
from cliffwatch.cli.run_request import read_document
from cliffwatch.cli.session import OutputOption, session_of
from cliffwatch.cli.tree import CommandTree
from cliffwatch.model.workload import workload_yaml

app = CommandTree(help="Validate, save and show workloads.")

FileArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A workload as YAML; docs/workloads.md says how.")]
NameArgument = Annotated[
    str, typer.Argument(metavar="WORKLOAD", help="A name, or name@version.", autocompletion=completion.workloads)
]

_COLUMNS = (
    Column("WORKLOAD", plain("name")),
    Column("VERSION", plain("version")),
    Column("ENGINE", plain("engine")),
    Column("DESCRIPTION", lambda workload: first_sentence(workload["description"])),
)


def first_sentence(text: str) -> str:
    return text.partition(". ")[0].removesuffix(".")


@app.command("validate")
def validate(context: typer.Context, file: FileArgument, output: OutputOption = None) -> None:
    """Check a workload without the service: exit status 0 when it is valid, 2 with every fault when it is not."""
    from cliffwatch.engines.registry import checked_workload  # slow to load, and no other command needs it

    workload = checked_workload(read_document(file))
    if session_of(context).how(output) is Output.JSON:
        print_json(workload.model_dump(mode="json"))
    say(f"{file} is a valid workload: {workload.name}, engine {workload.engine}")


@app.command("add")
def add(context: typer.Context, file: FileArgument, output: OutputOption = None) -> None:
    """Save a workload under its name; a changed document becomes a new version."""
    document = read_document(file)
    name = document.get("name")
    if not isinstance(name, str):
        fault = FieldFault("name", "give the workload a name; it is how runs and schedules refer to it")
        raise Problem(Code.WORKLOAD_INVALID, "the workload is not valid", [fault])
    session = session_of(context)
    with session.client() as api:
        body = api.put(path_of("workloads", name), document)
    if session.how(output) is Output.JSON:
        print_json(body)
    say(f"{body['name']}@{body['version']} saved; run it: cliffwatch run start {body['name']} --target …")


@app.command("list")
def list_workloads(context: typer.Context, output: OutputOption = None) -> None:
    """List the newest version of every workload."""
    session = session_of(context)
    with session.client() as api:
        rows = api.list_all("/workloads")
    print_rows(rows, _COLUMNS, session.how(output), "no workloads; save one with `cliffwatch workload add FILE`")


@app.command("show")
def show(context: typer.Context, workload: NameArgument, output: OutputOption = None) -> None:
    """Print a workload as a document that can be changed and submitted again."""
    session = session_of(context)
    name, _, version = workload.partition("@")
    with session.client() as api:
        body = api.get(path_of("workloads", name), version=version or None)
    if session.how(output) is Output.JSON:
        print_json(body)
    else:
        print(workload_yaml(body["document"]), end="")
