"""What dashboards are put together from: queries, panels, variables and annotations in this project's style.

They work in Grafana 9.3 to 12: no panel type is newer than that, and each version ignores the options of the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import common, heatmap, stat, statetimeline, timeseries
from grafana_foundation_sdk.builders import dashboard as grafana
from grafana_foundation_sdk.builders import prometheus as queries
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import heatmap as heatmap_models
from grafana_foundation_sdk.models import prometheus as query_models

DATASOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
#: The uid that dashboards/provisioning gives the data source.
DATASOURCE_UID = "cliffwatch-prometheus"
#: Of Grafana's grid, which is 24 wide. What is repeated has the whole width, which Grafana divides.
HEIGHT, HALF, WHOLE = 8, 12, 24
#: Prometheus answers at most 11,000 steps at once: no shorter step shows a run of 36 hours.
ANNOTATION_STEP = "12s"

TIME_SERIES = query_models.PromQueryFormat.TIME_SERIES
HEAT_MAP = query_models.PromQueryFormat.HEATMAP
_DESCENDING = common_models.SortOrder.DESCENDING


def _one_line(text: str) -> str:
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression, and how its series are called."""

    expression: str
    legend: str

    def target(self, number: int, form: query_models.PromQueryFormat, *, instant: bool = False) -> queries.Dataquery:
        target = queries.Dataquery().expr(_one_line(self.expression)).legend_format(self.legend).format(form)
        target = target.instant() if instant else target.range()
        return target.ref_id(chr(ord("A") + number)).datasource(DATASOURCE)


def graph(
    title: str,
    description: str,
    unit: str,
    given: Sequence[Query],
    *,
    logarithmic: bool = False,
    width: int = HALF,
    height: int = HEIGHT,
    repeat: str | None = None,
    maximum: float | None = None,
) -> timeseries.Panel:
    """Lines over time. What is missing is a gap in them, never a line across."""
    legend = common.VizLegendOptions().show_legend(True).placement(common_models.LegendPlacement.BOTTOM)
    panel = (
        timeseries.Panel()
        .title(title)
        .description(_one_line(description))
        .datasource(DATASOURCE)
        .unit(unit)
        .span(width)
        .height(height)
        .line_width(1)
        .fill_opacity(0 if logarithmic else 8)
        .show_points(common_models.VisibilityMode.NEVER)
        .span_nulls(False)
        .legend(legend.display_mode(common_models.LegendDisplayMode.LIST))
        .tooltip(common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI).sort(_DESCENDING))
    )
    if logarithmic:
        log2 = common.ScaleDistributionConfig().type(common_models.ScaleDistribution.LOG).log(2)
        panel = panel.scale_distribution(log2)
    else:
        panel = panel.min(0)
    if maximum is not None:
        panel = panel.max(maximum)
    if repeat is not None:
        panel = panel.repeat(repeat).repeat_direction("h").max_per_row(2)
    for number, query in enumerate(given):
        panel = panel.with_target(query.target(number, TIME_SERIES))
    return panel


def number(
    title: str,
    description: str,
    unit: str,
    query: Query,
    *,
    bad_from: float | None = None,
    by_name: bool = False,
    decimals: float | None = None,
    width: int = 4,
    height: int = 4,
) -> stat.Panel:
    """The newest value, red from `bad_from` on; or, by name, that of the series that there is at the moment."""
    steps = [models.Threshold(None, "text")]
    if bad_from is not None:
        steps = [models.Threshold(None, "green"), models.Threshold(bad_from, "red")]
    panel = (
        stat.Panel()
        .title(title)
        .description(_one_line(description))
        .datasource(DATASOURCE)
        .unit(unit)
        .span(width)
        .height(height)
        .thresholds(grafana.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .color_mode(common_models.BigValueColorMode.VALUE)
        .graph_mode(common_models.BigValueGraphMode.NONE)
        .text_mode(common_models.BigValueTextMode.NAME if by_name else common_models.BigValueTextMode.VALUE)
        .no_value("–")
        .with_target(query.target(0, TIME_SERIES, instant=by_name))
    )
    return panel if decimals is None else panel.decimals(decimals)


def heat(title: str, description: str, unit: str, query: Query, *, repeat: str) -> heatmap.Panel:
    """How many fell into which bucket, over time; one panel for each value of the variable `repeat`."""
    color = heatmap.HeatmapColorOptions().mode(heatmap_models.HeatmapColorMode.SCHEME).scheme("Oranges").exponent(0.5)
    return (
        heatmap.Panel()
        .title(title)
        .description(_one_line(description))
        .datasource(DATASOURCE)
        .span(WHOLE)
        .height(HEIGHT)
        .repeat(repeat)
        .repeat_direction("h")
        .max_per_row(2)
        .calculate(False)
        .color(color.steps(64).fill("dark-orange"))
        .cell_gap(0)
        .show_value(common_models.VisibilityMode.NEVER)
        .filter_values(heatmap.FilterValueRange().le(1e-9))
        .y_axis(heatmap.YAxisConfig().unit(unit).axis_placement(common_models.AxisPlacement.LEFT))
        .mode(common_models.TooltipDisplayMode.SINGLE)
        .hide_y_histogram()
        .show_legend()
        .with_target(query.target(0, HEAT_MAP))
    )


def presence(title: str, description: str, query: Query, *, width: int = WHOLE) -> statetimeline.Panel:
    """When each series was 1, and when it was 0 or not there."""
    answers = {
        "0": models.ValueMappingResult(text="down", color="red", index=0),
        "1": models.ValueMappingResult(text="up", color="green", index=1),
    }
    return (
        statetimeline.Panel()
        .title(title)
        .description(_one_line(description))
        .datasource(DATASOURCE)
        .unit("none")
        .span(width)
        .height(6)
        .mappings([models.ValueMap(options=answers)])
        .merge_values(True)
        .show_value(common_models.VisibilityMode.NEVER)
        .row_height(0.7)
        .with_target(query.target(0, TIME_SERIES))
    )


def datasource_variable() -> grafana.DatasourceVariable:
    """Which Prometheus; this project's own unless another is chosen."""
    chosen = models.VariableOption(selected=True, text="Cliffwatch", value=DATASOURCE_UID)
    return grafana.DatasourceVariable("datasource").label("Prometheus").type("prometheus").current(chosen)


def variable(
    name: str, label: str, query: str, *, several: bool = False, newest_first: bool = False
) -> grafana.QueryVariable:
    """A variable whose values are those of a label; with `several`, all of them unless some are chosen."""
    sort = models.VariableSort.ALPHABETICAL_DESC if newest_first else models.VariableSort.ALPHABETICAL_ASC
    made = (
        grafana.QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query(query)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(sort)
        .multi(several)
        .include_all(several)
    )
    return made.current(models.VariableOption(True, ["All"], ["$__all"])) if several else made


def annotation(name: str, color: str, expression: str, *, title: str, text: str, tag: str) -> Mapping[str, object]:
    """A region for as long as a series is there. The SDK does not know Prometheus' own fields of an annotation."""
    query = _one_line(expression)
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
