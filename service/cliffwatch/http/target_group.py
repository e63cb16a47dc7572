"""Target group of Prometheus' HTTP service discovery."""

from typing import Annotated

from pydantic import BaseModel, Field

from cliffwatch.base.units import format_duration
from cliffwatch.http.context import API_PREFIX

DISCOVERY_PREFIX = f"{API_PREFIX}/discovery"
#: The scrape interval is the length of the run's window, within these limits.
SHORTEST_INTERVAL_SECONDS, LONGEST_INTERVAL_SECONDS = 1.0, 10.0


class TargetGroup(BaseModel):
    """Addresses to scrape, and the labels that they share. Labels that begin with `__` only configure the scrape."""

    targets: Annotated[list[str], Field(min_length=1)]
    labels: dict[str, str]


def pace(window_seconds: float) -> dict[str, str]:
    """Labels that set the scrape interval and timeout for windows of `window_seconds`."""
    interval = format_duration(min(max(window_seconds, SHORTEST_INTERVAL_SECONDS), LONGEST_INTERVAL_SECONDS))
    return {"__scrape_interval__": interval, "__scrape_timeout__": interval}
