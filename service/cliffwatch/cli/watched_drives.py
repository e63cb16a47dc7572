"""`--drives` and `--prometheus`: drives of other hosts that a run watches instead of those below its target."""

from typing import Annotated, Any

import typer

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.model.drives import parse_drives

DrivesOption = Annotated[
    str | None,
    typer.Option(
        "--drives",
        metavar="prometheus:SELECTOR",
        help="Watch drives of other hosts that Prometheus knows, by label matchers such as "
        'instance=~"broker-.*",device=~"nvme.*", instead of those below the target.',
    ),
]
PrometheusOption = Annotated[
    str | None,
    typer.Option(
        "--prometheus",
        metavar="NAME",
        help="The Prometheus of --drives, of those in CLIFFWATCH_PROMETHEUS_SERVERS.",
    ),
]


def drives_document(text: str | None, server: str | None) -> dict[str, Any]:
    """`drives` of a run request, from a text such as `prometheus:device="nvme0n1"`. Raises Problem."""
    if text is None:
        if server is not None:
            fault = FieldFault("--prometheus", "says which one knows the drives of --drives; give both")
            raise Problem(Code.BAD_REQUEST, "no drives are asked for", [fault])
        return {}
    return {"drives": parse_drives(text).model_copy(update={"server": server}).model_dump(mode="json")}
