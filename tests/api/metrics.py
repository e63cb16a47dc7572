"""Values out of the service's metrics."""

from prometheus_client.parser import text_string_to_metric_families
from tests.api.harness import Api


def scrape(api: Api) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample by its name and labels; no token is needed."""
    response = api.client.get("/metrics")
    assert response.status_code == 200
    samples = {}
    for family in text_string_to_metric_families(response.text):
        assert family.documentation
        for sample in family.samples:
            samples[(sample.name, frozenset(sample.labels.items()))] = sample.value
    return samples


def value(api: Api, name: str, **labels: str) -> float:
    return scrape(api)[(f"cliffwatch_service_{name}", frozenset(labels.items()))]
