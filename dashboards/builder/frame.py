"""What all dashboards share: variables, annotations, links to one another, and how a dashboard is put together."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboards.builder.parts import DATASOURCE, Link, Panel, one_line
from dashboards.builder.promql import RETENTION, RUN, drives_of_run
from grafana_foundation_sdk.builders import dashboard as grafana
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard as models

Document = dict[str, Any]
Variable = Builder[models.VariableModel]
Rows = Sequence[tuple[str, Callable[[], Iterable[Panel]]]]
Annotation = Mapping[str, object]

#: The uid that dashboards/provisioning gives the data source.
DATASOURCE_UID = "cliffwatch-prometheus"
#: Prometheus answers at most 11,000 steps at once: no shorter step shows a run of 36 hours.
ANNOTATION_STEP = "12s"
#: Evaluated at any time, a range of this length and offset covers all that Prometheus keeps. Needed where the
#: dashboard's time is not that of the runs.
EVER = "[100y] offset -50y"
#: The dashboards in the order in which they are read: uid by title.
UIDS = {
    "Runs": "cliffwatch-runs",
    "Run": "cliffwatch-run",
    "Layers": "cliffwatch-layers",
    "Drive": "cliffwatch-drive",
    "Compare": "cliffwatch-compare",
    "Watcher": "cliffwatch-watcher",
}
#: Variables of each dashboard whose values links pass on.
SHARED = {
    "Runs": ("datasource",),
    "Run": ("datasource", "run", "instance", "device"),
    "Layers": ("datasource", "run", "instance", "device"),
    "Drive": ("datasource", "run", "device", "instance"),
    "Compare": ("datasource", "run"),
    "Watcher": ("datasource",),
}
#: Variables that have one value on this dashboard and any number on others: links at the top do not pass them on.
ONE_AT_A_TIME = {"Drive": ("device", "instance")}
#: The dashboard whose time axis is elapsed time since the start of the runs.
ON_ELAPSED_TIME = "Compare"


@dataclass(frozen=True, slots=True)
class Frame:
    """A dashboard without its panels. `time` is the range that it opens with: from and to."""

    title: str
    question: str
    variables: Sequence[Variable]
    annotations: Sequence[Annotation]
    time: tuple[str, str] = ("now-30m", "now")
    timezone: str = "browser"
    refresh: str = "10s"
    more_links: Sequence[grafana.DashboardLink] = ()


def put_together(frame: Frame, rows: Rows) -> Document:
    """Build a dashboard from its frame and rows of panels; returns its JSON document."""
    made = (
        grafana.Dashboard(frame.title)
        .uid(UIDS[frame.title])
        .description(frame.question)
        .tags(["cliffwatch"])
        .timezone(frame.timezone)
        .time(*frame.time)
        .refresh(frame.refresh)
        .readonly()
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .with_variable(_datasource_variable())
    )
    for variable in frame.variables:
        made = made.with_variable(variable)
    for other in UIDS:
        if other != frame.title:
            made = made.link(_link_between(frame.title, other))
    for link in frame.more_links:
        made = made.link(link)
    identity = 0
    for title, panels in rows:
        identity += 1
        made = made.with_row(grafana.Row(title).id(identity))
        for panel in panels():
            identity += 1
            made = made.with_panel(_numbered(panel, identity))
    document: Document = json.loads(json.dumps(made.build(), cls=JSONEncoder))
    for panel in document["panels"]:
        if panel["type"] == "heatmap":
            # Grafana 9's option to show the value below the pointer.
            panel["options"]["tooltip"]["show"] = True
    return document | {"annotations": {"list": list(frame.annotations)}}


def _numbered(panel: Any, identity: int) -> Panel:
    """Set the panel's id to its place on the dashboard: links to panels stay valid until a panel is moved."""
    numbered: Panel = panel.id(identity)
    return numbered


def _link_between(here: str, there: str) -> grafana.DashboardLink:
    """Link at the top of a dashboard to another one, with the values of the variables that both have."""
    handed_over = [name for name in SHARED[there] if name in SHARED[here] and name not in ONE_AT_A_TIME.get(there, ())]
    url = f"/d/{UIDS[there]}?" + "&".join(f"${{{name}:queryparam}}" for name in handed_over)
    keeps_time = ON_ELAPSED_TIME not in (here, there)
    link = grafana.DashboardLink(there).type(models.DashboardLinkType.LINK).icon("dashboard")
    return link.url(url).keep_time(keeps_time).include_vars(False).target_blank(False)


def data_link(title: str, there: str, **values: str) -> Link:
    """Link from a panel's data to the dashboard `there`. `values` set its variables; the data source is kept. `time`:
    the part of the URL's query that sets its time range, by default the range that is shown now."""
    time = values.pop("time", "${__url_time_range}")
    unknown = set(values) - set(SHARED[there]) - {"run_2"}
    assert not unknown, f"{there} has no {unknown}"
    chosen = "".join(f"&var-{name}={value}" for name, value in values.items())
    return {"title": title, "url": f"/d/{UIDS[there]}?${{datasource:queryparam}}{chosen}{time and '&'}{time}"}


def page_link(title: str, path: str) -> Link:
    """Link from a panel's data to a page of the service; the dashboard needs `service_variable`."""
    return {"title": title, "url": f"${{service}}{path}"}


def service_variable() -> grafana.QueryVariable:
    """Hidden variable: the address at which people reach the service's pages."""
    address = variable("service", "Service", "cliffwatch_service_address_info", "url")
    return address.hide(models.VariableHide.HIDE_VARIABLE)


def _datasource_variable() -> grafana.DatasourceVariable:
    """Variable that chooses the Prometheus; this project's own unless another is chosen."""
    chosen = models.VariableOption(selected=True, text="Cliffwatch", value=DATASOURCE_UID)
    return grafana.DatasourceVariable("datasource").label("Prometheus").type("prometheus").current(chosen)


def variable(
    name: str, label: str, series: str, of: str, *, several: bool = False, descending: bool = False
) -> grafana.QueryVariable:
    """A variable with the values of a series' label `of`; with `several`, any number can be chosen, all by default.
    `descending`: writes and publications come before reads, since a cliff shows in them."""
    made = (
        grafana.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query(f"label_values({one_line(series)}, {of})")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_DESC if descending else models.VariableSort.ALPHABETICAL_ASC)
        .multi(several)
        .include_all(several)
    )
    return made.current(models.VariableOption(True, ["All"], ["$__all"])) if several else made


def requests_variable(series: str) -> grafana.QueryVariable:
    """Variable that chooses kinds of requests, writes first."""
    return variable("request", "Request", series, "operation", several=True, descending=True)


def computed(name: str, label: str, expression: str, regex: str, *, several: bool = False) -> grafana.QueryVariable:
    """A variable of a PromQL expression: what `regex` captures in each result, printed as `{labels} value time`. With
    `several`, any number can be chosen, all by default."""
    made = (
        grafana.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query(f"query_result({one_line(expression)})")
        .regex(f"/{regex}/")
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .multi(several)
        .include_all(several)
    )
    return made.current(models.VariableOption(True, ["All"], ["$__all"])) if several else made


#: Regular expression for `computed`: the value of a series without its fraction.
WHOLE_VALUE = r"\} (\d+)"


def run_variable() -> grafana.QueryVariable:
    """Variable that chooses a run: sorted by start of load, the newest first, live runs before all others."""
    live = "1e10 + max by (run_id) (cliffwatch_run_start_timestamp_seconds)"
    known = f"max by (run_id) (last_over_time(cliffwatch_run_start_timestamp_seconds[{RETENTION}]))"
    return computed("run", "Run", f"sort_desc({live} or {known})", r'run_id="([^"]+)"')


def start_variable() -> grafana.QueryVariable:
    """Hidden variable: start of the run's load in seconds since the epoch; 0 while that is not known."""
    start = f"max(last_over_time(cliffwatch_run_start_timestamp_seconds{{{RUN}}}[{RETENTION}])) or vector(0)"
    return computed("run_start", "Start", start, WHOLE_VALUE).hide(models.VariableHide.HIDE_VARIABLE)


def drive_variables() -> tuple[grafana.QueryVariable, grafana.QueryVariable]:
    """Variables that choose among the hosts and the drives of the run."""
    hosts = f"sort(max by (instance) ({drives_of_run()}))"
    return (
        computed("instance", "Host", hosts, r'instance="([^"]+)"', several=True),
        variable("device", "Drive", f"cliffwatch_device_info{{{RUN}}}", "device", several=True),
    )


def annotation(name: str, color: str, expression: str, *, title: str, text: str, tag: str) -> Annotation:
    """Annotation at each time at which a series begins, as a point: regions, one per series, would cover the lines,
    and before Grafana 11.5 break up into fences on a long time axis. It is a dictionary because the SDK lacks the
    fields of Prometheus' annotations."""
    series = one_line(expression)
    before = f"max_over_time(({series})[{ANNOTATION_STEP}:{ANNOTATION_STEP}] offset {ANNOTATION_STEP})"
    query = f"({series}) unless {before}"
    return {
        "name": name,
        "datasource": DATASOURCE.to_json(),
        "enable": True,
        "hide": False,
        "iconColor": color,
        "expr": query,
        "step": ANNOTATION_STEP,
        "titleFormat": title,
        "textFormat": text,
        "tagKeys": tag,
        "target": {"expr": query, "interval": ANNOTATION_STEP, "refId": "Anno"},
    }


def run_annotations() -> list[Annotation]:
    """Annotations of the run: its phases, its findings, and the alerts about it or about no run at all."""
    return [
        annotation(
            "Phases",
            "blue",
            f"max by (phase) (cliffwatch_run_phase{{{RUN}}}) == 1",
            title="{{phase}}",
            text="The run's phase",
            tag="phase",
        ),
        annotation(
            "Findings",
            "orange",
            f"max by (kind, operation) (cliffwatch_finding_active{{{RUN}}}) == 1",
            title="{{kind}}",
            text="Found in the latency of {{operation}}",
            tag="operation",
        ),
        annotation(
            "Alerts",
            "red",
            'max by (alertname, severity, device) (ALERTS{alertstate="firing", severity!="info", run_id=~"$run|"})',
            title="{{alertname}}",
            text="{{severity}} {{device}}",
            tag="severity",
        ),
    ]
