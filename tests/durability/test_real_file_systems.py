"""Power is cut under ext4 and XFS while a worker and a service write: whatever they acknowledged is there."""

from pathlib import Path

import pytest
from testkit.power_cuts import cut_disk
from testkit.written_disk import cut_again_and_again

SEEDS = range(25)
FILE_SYSTEMS = pytest.mark.parametrize("file_system", ["ext4", "xfs"])


@FILE_SYSTEMS
def test_acknowledged_data_survives_power_cuts_on_a_real_file_system(file_system: str, tmp_path: Path) -> None:
    with cut_disk(tmp_path, file_system) as disk:
        promises, why = cut_again_and_again(disk, SEEDS)
    assert why is None
    assert {kind for kind, _ in promises} == {"window", "event", "token", "run", "failed"}


@FILE_SYSTEMS
def test_it_would_not_be_if_nothing_was_synced(file_system: str, tmp_path: Path) -> None:
    with cut_disk(tmp_path, file_system) as disk:
        _, why = cut_again_and_again(disk, SEEDS, is_forgetful=True)
    assert why is not None
