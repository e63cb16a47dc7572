"""Building blocks of dashboards: queries and panels in this project's style.

They work in Grafana 9.3 to 12: no panel type is newer than 9.3, and each version ignores the options of the others.
A colour that warns is used only where a panel's description says what is bad.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import common, heatmap, stat, statetimeline, table, timeseries
from grafana_foundation_sdk.builders import dashboard as grafana
from grafana_foundation_sdk.builders import prometheus as queries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import heatmap as heatmap_models
from grafana_foundation_sdk.models import prometheus as query_models

Panel = Builder[models.Panel]
#: A data link as Grafana keeps it: `title` and `url`.
Link = Mapping[str, object]

DATASOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
#: Sizes in units of Grafana's grid, which is 24 wide. Repeated panels have the whole width, which Grafana divides.
HEIGHT, SMALL_HEIGHT, BAR_HEIGHT, HALF, THIRD, WHOLE = 8, 4, 6, 12, 8, 24

TIME_SERIES = query_models.PromQueryFormat.TIME_SERIES
HEAT_MAP = query_models.PromQueryFormat.HEATMAP
TABLE = query_models.PromQueryFormat.TABLE
_DESCENDING = common_models.SortOrder.DESCENDING


#: Where the axis of values that are zero ends: Grafana's own choice is 100 of every unit, which for shares is 10000 %.
_SMALLEST_AXIS = {"s": 0.001, "percentunit": 0.01}


def one_line(text: str) -> str:
    return " ".join(text.split())


def reason_of_emptiness(description: str) -> str:
    """What a panel without data shows: the words after "Empty:", with which its description ends."""
    return one_line(description).partition(" Empty: ")[2].removesuffix(".")


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression, the legend of its series, and style options that override the panel's for these series.

    `fill_to` is the legend of another series; the space down to that series is filled.
    """

    expression: str
    legend: str
    unit: str | None = None
    color: str | None = None
    dashed: bool = False
    fill_to: str | None = None
    width: int | None = None

    def target(
        self,
        number: int,
        form: query_models.PromQueryFormat,
        *,
        instant: bool = False,
        scraped_every: str | None = None,
    ) -> queries.Dataquery:
        """The query for a panel. `scraped_every`: the scrape interval where it is longer than the data source's."""
        target = queries.Dataquery().expr(one_line(self.expression)).legend_format(self.legend).format(form)
        target = target.instant() if instant else target.range()
        if scraped_every is not None:
            target = target.interval(scraped_every)
        return target.ref_id(reference(number)).datasource(DATASOURCE)

    def properties(self) -> list[models.DynamicConfigValue]:
        """Properties of its series that override the panel's defaults."""
        found: list[tuple[str, object]] = []
        if self.unit is not None:
            found += [
                ("unit", self.unit),
                ("custom.axisPlacement", "right"),
                ("custom.axisSoftMax", smallest_axis(self.unit)),
            ]
        if self.color is not None:
            found.append(("color", {"mode": "fixed", "fixedColor": self.color}))
        if self.dashed:
            found.append(("custom.lineStyle", {"fill": "dash", "dash": [6, 6]}))
        if self.fill_to is not None:
            found += [("custom.fillBelowTo", self.fill_to), ("custom.fillOpacity", 14)]
        if self.width is not None:
            found.append(("custom.lineWidth", self.width))
        return [models.DynamicConfigValue(name, value) for name, value in found]


def smallest_axis(unit: str) -> float:
    return _SMALLEST_AXIS.get(unit, 1)


def reference(number: int) -> str:
    """The letter by which Grafana knows a panel's query."""
    return chr(ord("A") + number)


def _thresholds(bad_from: float | None, bad_below: float | None = None) -> grafana.ThresholdsConfig:
    steps = [models.Threshold(None, "text")]
    if bad_from is not None:
        steps = [models.Threshold(None, "green"), models.Threshold(bad_from, "red")]
    elif bad_below is not None:
        steps = [models.Threshold(None, "red"), models.Threshold(bad_below, "green")]
    return grafana.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


def graph(
    title: str,
    description: str,
    unit: str,
    given: Sequence[Query],
    *,
    logarithmic: bool = False,
    stacked: bool = False,
    width: int = HALF,
    height: int = HEIGHT,
    repeat: str | None = None,
    maximum: float | None = None,
    bad_from: float | None = None,
    scraped_every: str | None = None,
    links: Sequence[Link] = (),
) -> timeseries.Panel:
    """Panel with lines over time, and a red line at `bad_from`. Missing values are gaps, never bridged by a line."""
    legend = common.VizLegendOptions().show_legend(True).placement(common_models.LegendPlacement.BOTTOM)
    panel = (
        timeseries.Panel()
        .title(title)
        .description(one_line(description))
        .no_value(reason_of_emptiness(description))
        .datasource(DATASOURCE)
        .unit(unit)
        .span(width)
        .height(height)
        .line_width(1)
        .fill_opacity(60 if stacked else 0 if logarithmic else 8)
        .show_points(common_models.VisibilityMode.NEVER)
        .span_nulls(False)
        .legend(legend.display_mode(common_models.LegendDisplayMode.TABLE).calcs(["lastNotNull", "max"]))
        .tooltip(common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI).sort(_DESCENDING))
    )
    if logarithmic:
        decades = common.ScaleDistributionConfig().type(common_models.ScaleDistribution.LOG).log(10)
        panel = panel.scale_distribution(decades)
    else:
        panel = panel.min(0).axis_soft_max(smallest_axis(unit))
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL).group("A"))
    if maximum is not None:
        panel = panel.max(maximum)
    if bad_from is not None:
        steps = [models.Threshold(None, "transparent"), models.Threshold(bad_from, "red")]
        panel = panel.thresholds(grafana.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
        style = common.GraphThresholdsStyleConfig().mode(common_models.GraphThresholdsStyleMode.DASHED)
        panel = panel.thresholds_style(style)
    if repeat is not None:
        panel = panel.repeat(repeat).repeat_direction("h").max_per_row(2)
    for number, query in enumerate(given):
        panel = panel.with_target(query.target(number, TIME_SERIES, scraped_every=scraped_every))
        if properties := query.properties():
            panel = panel.override_by_query(reference(number), properties)
    return panel.override_by_regexp(".*", _links(links)) if links else panel


def _links(links: Sequence[Link]) -> list[models.DynamicConfigValue]:
    return [models.DynamicConfigValue("links", [dict(link) for link in links])]


def number(
    title: str,
    description: str,
    unit: str,
    query: Query,
    *,
    bad_from: float | None = None,
    bad_below: float | None = None,
    by_name: bool = False,
    several: bool = False,
    decimals: float | None = None,
    width: int = 4,
    filled: bool = False,
) -> stat.Panel:
    """Panel with the present value, red from `bad_from` on or below `bad_below`; `filled` colours the background.

    With `by_name` it shows the legend of the present series instead of a value; with `several`, both for each series.
    The query is instant, so that ended series are not shown as present.
    """
    mode = common_models.BigValueTextMode.VALUE
    if by_name:
        mode = common_models.BigValueTextMode.NAME
    elif several:
        mode = common_models.BigValueTextMode.VALUE_AND_NAME
    panel = (
        stat.Panel()
        .title(title)
        .description(one_line(description))
        .datasource(DATASOURCE)
        .unit(unit)
        .span(width)
        .height(SMALL_HEIGHT)
        .thresholds(_thresholds(bad_from, bad_below))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .color_mode(common_models.BigValueColorMode.BACKGROUND if filled else common_models.BigValueColorMode.VALUE)
        .graph_mode(common_models.BigValueGraphMode.NONE)
        .text_mode(mode)
        .no_value(reason_of_emptiness(description))
        .mappings([_missing(reason_of_emptiness(description))])
        .with_target(query.target(0, TIME_SERIES, instant=True))
    )
    return panel if decimals is None else panel.decimals(decimals)


def answer(
    title: str, description: str, query: Query, values: Mapping[int, tuple[str, str]], *, width: int
) -> stat.Panel:
    """Panel with one word on a coloured background: the text and colour that `values` has for the query's value."""
    panel = number(title, description, "none", query, width=width, filled=True)
    return panel.mappings([_named_values(values), _missing(reason_of_emptiness(description))])


def _missing(text: str) -> models.SpecialValueMap:
    """Mapping of a missing value to a text in grey, whatever colour the thresholds begin with."""
    result = models.ValueMappingResult(text=text, color="text")
    return models.SpecialValueMap(
        models.DashboardSpecialValueMapOptions(match=models.SpecialValueMatch.NULL_AND_NAN, result=result)
    )


def heat(title: str, description: str, unit: str, query: Query, *, repeat: str) -> heatmap.Panel:
    """Heat map of each bucket's share over time; one panel for each value of the variable `repeat`."""
    color = heatmap.HeatmapColorOptions().mode(heatmap_models.HeatmapColorMode.SCHEME).scheme("Oranges").exponent(0.5)
    return (
        heatmap.Panel()
        .title(title)
        .description(one_line(description))
        .no_value(reason_of_emptiness(description))
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
        .cell_values(heatmap.CellValues().unit("percentunit").decimals(2))
        .y_axis(heatmap.YAxisConfig().unit(unit).axis_placement(common_models.AxisPlacement.LEFT))
        .mode(common_models.TooltipDisplayMode.SINGLE)
        .hide_y_histogram()
        .show_legend()
        .with_target(query.target(0, HEAT_MAP))
    )


def _named_values(values: Mapping[int, tuple[str, str]]) -> models.ValueMap:
    return models.ValueMap(
        options={
            str(value): models.ValueMappingResult(text=text, color=color, index=index)
            for index, (value, (text, color)) in enumerate(values.items())
        }
    )


def timeline(
    title: str,
    description: str,
    given: Sequence[Query],
    values: Mapping[int, tuple[str, str]],
    *,
    width: int = WHOLE,
    height: int = BAR_HEIGHT,
    named: bool = False,
    links: Sequence[Link] = (),
) -> statetimeline.Panel:
    """Panel with a bar over time for each series, coloured by its value; `named` writes the value's name into it."""
    shown = common_models.VisibilityMode.AUTO if named else common_models.VisibilityMode.NEVER
    panel = (
        statetimeline.Panel()
        .title(title)
        .description(one_line(description))
        .no_value(reason_of_emptiness(description))
        .datasource(DATASOURCE)
        .unit("none")
        .span(width)
        .height(height)
        .mappings([_named_values(values)])
        .merge_values(True)
        .show_value(shown)
        .row_height(0.8)
        .fill_opacity(80)
        .line_width(0)
    )
    for number, query in enumerate(given):
        panel = panel.with_target(query.target(number, TIME_SERIES))
    return panel.override_by_regexp(".*", _links(links)) if links else panel


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: `source` is a label, or a query's index for its value. `colors`: colours by cell text. A
    `hidden` one is there for links alone."""

    source: str | int
    title: str
    unit: str | None = None
    width: int | None = None
    decimals: int | None = None
    colors: Mapping[str, str] | None = None
    links: Sequence[Link] = ()
    hidden: bool = False

    def properties(self) -> list[models.DynamicConfigValue]:
        found: list[tuple[str, object]] = []
        if self.hidden:
            found.append(("custom.hidden", True))
        if self.unit is not None:
            found.append(("unit", self.unit))
        if self.width is not None:
            found.append(("custom.width", self.width))
        if self.decimals is not None:
            found.append(("decimals", self.decimals))
        if self.links:
            found.append(("links", [dict(link) for link in self.links]))
        if self.colors is not None:
            options = {
                text: {"color": color, "index": index} for index, (text, color) in enumerate(self.colors.items())
            }
            found += [
                ("mappings", [{"type": "value", "options": options}]),
                # Grafana 9.3 knows the first, later ones the second.
                ("custom.displayMode", "color-text"),
                ("custom.cellOptions", {"type": "color-text"}),
            ]
        return [models.DynamicConfigValue(name, value) for name, value in found]


def rows(
    title: str,
    description: str,
    given: Sequence[Query],
    columns: Sequence[Column],
    *,
    sort: tuple[str, bool] | None = None,
    width: int = WHOLE,
    height: int = HEIGHT,
) -> table.Panel:
    """Table of present values; rows with equal labels are merged. `sort`: a column's title, and whether it descends."""
    values = [f"Value #{reference(number)}" for number in range(len(given))] if len(given) > 1 else ["Value"]
    names = {
        column.title: values[column.source] if isinstance(column.source, int) else column.source for column in columns
    }
    hidden = {"Time", "Value", *values} - set(names.values())
    order = {name: index for index, name in enumerate(names.values())}
    organize = {
        "excludeByName": dict.fromkeys(sorted(hidden), True),
        "indexByName": order,
        "renameByName": {name: column for column, name in names.items()},
    }
    panel = (
        table.Panel()
        .title(title)
        .description(one_line(description))
        .datasource(DATASOURCE)
        .unit("none")
        .span(width)
        .height(height)
        .no_value(reason_of_emptiness(description))
        .filterable(True)
        .with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(models.DataTransformerConfig(id_val="organize", options=organize))
    )
    if sort is not None:
        panel = panel.sort_by([common.TableSortByFieldState().display_name(sort[0]).desc(sort[1])])
    for number, query in enumerate(given):
        panel = panel.with_target(query.target(number, TABLE, instant=True))
    panel = panel.override_by_regexp(".*", [models.DynamicConfigValue("noValue", "–")])
    for column in columns:
        if properties := column.properties():
            panel = panel.override_by_name(column.title, properties)
    return panel
