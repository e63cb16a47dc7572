from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.harness import Api, serving

from cliffwatch.model.settings import Settings, read_settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("STATE_DIRECTORY", "RUNS_DIRECTORY", "DATABASE_URL", "MISFIRE_GRACE"):
        monkeypatch.delenv(f"CLIFFWATCH_{name}", raising=False)
    return read_settings(state_directory=tmp_path / "state")


@pytest.fixture
def api(settings: Settings) -> Iterator[Api]:
    with serving(settings) as api:
        yield api


@pytest.fixture(scope="module")
def lasting_api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """One service for all tests of a module that leave nothing behind."""
    with serving(read_settings(state_directory=tmp_path_factory.mktemp("state"))) as api:
        yield api
