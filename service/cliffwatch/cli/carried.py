"""`cliffwatch rules export`, `dashboards export`: alert rules and dashboards for your own Prometheus and Grafana."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from cliffwatch.base.documents import readable_yaml
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.resources import ALERTS_DIRECTORY, DASHBOARDS_DIRECTORY
from cliffwatch.cli.output import Output
from cliffwatch.cli.run_source import FileOutputOption, say_written, written
from cliffwatch.cli.session import session_of
from cliffwatch.cli.tree import CommandTree

rules = CommandTree(help="Alert and recording rules.")
dashboards = CommandTree(help="Grafana's dashboards.")
_NAME = "cliffwatch"
#: Label by which the Grafana of kube-prometheus-stack finds dashboards.
_DASHBOARD_LABEL = {"grafana_dashboard": "1"}
ToOption = Annotated[Path | None, typer.Option("--to", help="The file to write; stdout otherwise.")]
OperatorOption = Annotated[
    bool, typer.Option("--for-operator", help="As resources of Kubernetes, for the Prometheus operator.")
]
LabelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=VALUE",
        help="With --for-operator: a label of the resources, such as release=prometheus; may be given again.",
    ),
]


@rules.command("export")
def export_rules(
    context: typer.Context,
    for_operator: OperatorOption = False,
    label: LabelsOption = None,
    to: ToOption = None,
    output: FileOutputOption = None,
) -> None:
    """Write all rules as one rule file of Prometheus, or as a PrometheusRule.

    Their links to runbooks lead to the service of --url, or to CLIFFWATCH_PUBLIC_URL.
    """
    session = session_of(context)
    address = session.service_url().rstrip("/") if session.url else session.settings().public_url
    groups = [group for path in sorted((ALERTS_DIRECTORY / "rules").glob("*.yaml")) for group in _groups_of(path)]
    for rule in (rule for group in groups for rule in group["rules"] if "annotations" in rule):
        rule["annotations"]["runbook_url"] = address + rule["annotations"]["runbook_url"]
    document: dict[str, Any] = {"groups": groups}
    if for_operator:
        document = _resource("monitoring.coreos.com/v1", "PrometheusRule", _NAME, _labels(label)) | {"spec": document}
    else:
        _require_no_label(label)
    _write(context, [document], to, output)


@dashboards.command("export")
def export_dashboards(
    context: typer.Context,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="The directory to write into; with --for-operator the file, or else stdout."),
    ] = None,
    for_operator: OperatorOption = False,
    label: LabelsOption = None,
    output: FileOutputOption = None,
) -> None:
    """Write all dashboards as files of JSON, or as a ConfigMap each."""
    found = sorted(DASHBOARDS_DIRECTORY.glob("*.json"))
    if for_operator:
        labels = _DASHBOARD_LABEL | _labels(label)
        documents = [
            _resource("v1", "ConfigMap", f"{_NAME}-{path.stem}", labels)
            | {"data": {f"{_NAME}-{path.name}": path.read_text(encoding="utf-8")}}
            for path in found
        ]
        _write(context, documents, to, output)
        return
    _require_no_label(label)
    if to is None:
        raise Problem(Code.BAD_REQUEST, "--to: name the directory to write the dashboards into")
    try:
        to.mkdir(exist_ok=True)
    except OSError as error:
        raise Problem(Code.BAD_REQUEST, f"--to: {to} cannot be made: {error.strerror}") from error
    for path in found:
        with written(to / f"{_NAME}-{path.name}") as file:
            file.write(path.read_bytes())
    say_written(to, "json", session_of(context).how(output))


def _groups_of(path: Path) -> Iterator[dict[str, Any]]:
    yield from yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]


def _resource(api_version: str, kind: str, name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": labels}}


def _labels(texts: list[str] | None) -> dict[str, str]:
    """Labels of Kubernetes resources, from NAME=VALUE texts. Raises Problem(bad_request) if a text has another form;
    whether Kubernetes allows the name and the value is not checked."""
    labels = {"app.kubernetes.io/name": _NAME}
    for text in texts or ():
        name, _, value = text.partition("=")
        if not (name and value):
            raise Problem(
                Code.BAD_REQUEST, "a label is not valid", [FieldFault("--label", f"{text!r}: write NAME=VALUE")]
            )
        labels[name] = value
    return labels


def _require_no_label(texts: list[str] | None) -> None:
    if texts:
        fault = FieldFault("--label", "labels are of resources of Kubernetes; add --for-operator")
        raise Problem(Code.BAD_REQUEST, "nothing has this label", [fault])


def _write(context: typer.Context, documents: Iterable[dict[str, Any]], to: Path | None, output: Output | None) -> None:
    with written(to) as file:
        file.write("---\n".join(map(readable_yaml, documents)).encode())
    say_written(to, "yaml", session_of(context).how(output))
