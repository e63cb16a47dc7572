"""The exporter beside a real NVMe driver and the real nvme-cli, in a virtual machine."""

import json

import pytest
from tests.exporters.drive import virtual_machine
from tests.exporters.drive.exporter import samples

pytestmark = pytest.mark.real(why="a virtual machine boots first; other tests have what nvme-cli prints, recorded")
WRITTEN_BYTES = 32 * 1024**2
_DRIVE = '{device="nvme1n1",serial="DATA-0001"}'
_SECOND = '{device="nvme2n1",serial="DATA-0002"}'
PAGE = "; ".join(
    [
        "import sys",
        "from cliffwatch_drive_exporter.commands import Commands",
        "print(Commands('/dev/nvme1', sys.argv[1]).ask_page(2, 512).hex())",
    ]
)
#: Waits are bounded by the test, which bounds the machine.
SCRIPT = rf"""
run() {{ /usr/bin/busybox "$@"; }}
[ -x /usr/bin/busybox ] || run() {{ /bin/busybox "$@"; }}
run mount -t proc proc /proc
run mount -t sysfs sysfs /sys
run mount -t devtmpfs devtmpfs /dev
run mount -t tmpfs tmpfs /tmp
run ip link set lo up
show() {{ echo; echo "{virtual_machine.BEGIN}$1"; shift; "$@"; echo; echo "{virtual_machine.END}"; }}
scrape() {{ run wget -q -O /tmp/metrics http://127.0.0.1:9895/metrics; }}
until_it_says() {{ until scrape && run grep -q "$1" /tmp/metrics; do run sleep 1; done; }}
export PYTHONPATH=/packages PYTHONDONTWRITEBYTECODE=1
$PYTHON -m cliffwatch_drive_exporter --nvme.program=$NVME &
exporter=$!
until_it_says '^cliffwatch_drive_media_counter_available{_SECOND}'
until_it_says '^cliffwatch_drive_media_counter_available{_DRIVE}'
show before run cat /tmp/metrics
run dd if=/dev/zero of=/dev/nvme1n1 bs=1M count={WRITTEN_BYTES >> 20} oflag=direct 2>/dev/null
until_it_says '^cliffwatch_drive_host_written_bytes_total{_DRIVE}'
show after run cat /tmp/metrics
show page $PYTHON -c "{PAGE}" $NVME
show smart $NVME smart-log /dev/nvme1 --output-format=json
run kill $exporter
wait $exporter
show ended echo $?
run poweroff -f
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the machine printed, by name: two drives besides that of its root file system, one of them written to."""
    directory = tmp_path_factory.mktemp("machine")
    image = virtual_machine.make_image(directory, SCRIPT)
    devices = []
    for number in (1, 2):
        disk = directory / f"disk{number}.img"
        with disk.open("wb") as file:
            file.truncate(64 * 1024**2)
        devices += ["-drive", f"file={disk},if=none,id=disk{number},format=raw"]
        devices += ["-device", f"nvme,drive=disk{number},serial=DATA-000{number}"]
    return virtual_machine.run(directory, image, devices)


def test_every_drive_is_found_by_its_disk_and_serial(printed: dict[str, str]) -> None:
    found = samples(printed["before"])
    up = {name: value for name, value in found.items() if name.startswith("cliffwatch_drive_up{")}
    assert up[f"cliffwatch_drive_up{_DRIVE}"] == 1
    assert up[f"cliffwatch_drive_up{_SECOND}"] == 1
    assert 'cliffwatch_drive_up{device="nvme0n1",serial="ROOT"}' in up


def test_exported_host_written_bytes_match_the_count_of_the_drive(printed: dict[str, str]) -> None:
    name = f"cliffwatch_drive_host_written_bytes_total{_DRIVE}"
    before, after = samples(printed["before"]), samples(printed["after"])
    assert name not in before, "nothing was written yet, and 0 is a drive that does not report it"
    # Data units are rounded up.
    assert WRITTEN_BYTES <= after[name] < WRITTEN_BYTES + 2 * 512_000
    assert after[name] == int(json.loads(printed["smart"])["data_units_written"]) * 512_000
    assert f"cliffwatch_drive_host_written_bytes_total{_SECOND}" not in after


def test_a_drive_without_a_media_counter_says_so(printed: dict[str, str]) -> None:
    found = samples(printed["after"])
    assert found[f"cliffwatch_drive_media_counter_available{_DRIVE}"] == 0
    assert not [name for name in found if name.startswith("cliffwatch_drive_media_written_bytes_total")]
    assert not [name for name in found if name.startswith("cliffwatch_drive_free_blocks_ratio")]


def test_health_is_that_of_the_drive(printed: dict[str, str]) -> None:
    found, smart = samples(printed["after"]), json.loads(printed["smart"])
    assert found[f"cliffwatch_drive_temperature_celsius{_DRIVE}"] == int(smart["temperature"]) - 273
    assert found[f"cliffwatch_drive_spare_ratio{_DRIVE}"] == int(smart["avail_spare"]) / 100
    assert found[f"cliffwatch_drive_media_errors_total{_DRIVE}"] == int(smart["media_errors"])
    assert found['cliffwatch_drive_poll_errors_total{device="nvme1n1",reason="output",serial="DATA-0001"}'] == 0


def test_the_bytes_of_a_page_are_those_that_nvme_cli_reads(printed: dict[str, str]) -> None:
    page, smart = bytes.fromhex(printed["page"].strip()), json.loads(printed["smart"])
    # NVM Express Base Specification 2.0, SMART / Health Information: units written, 16 bytes from 48 on.
    assert len(page) == 512
    assert int.from_bytes(page[48:64], "little") == int(smart["data_units_written"]) > 0


def test_it_ends_well_when_asked_to(printed: dict[str, str]) -> None:
    assert printed["ended"].strip() == "0"
