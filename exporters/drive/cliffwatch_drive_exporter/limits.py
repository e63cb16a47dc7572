"""Time over the IOPS and throughput limits of a cloud volume: Amazon's log page D0h.

EBS volumes on Nitro instances and EC2's NVMe instance storage count the microseconds over their limits of IOPS and
throughput ("Amazon EBS detailed performance statistics" in Amazon's documentation). Newer versions of nvme-cli read the
page as `nvme amzn stats`; older ones only return its bytes. Only Amazon's volumes are queried, since other makers use
the page number for pages of their own.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

from cliffwatch_drive_exporter.commands import Commands, DriveError, Reason
from cliffwatch_drive_exporter.controllers import Controller
from cliffwatch_drive_exporter.logs import whole_number

#: Model names of Amazon's controllers.
_MODELS = ("Amazon Elastic Block Store", "Amazon EC2 NVMe Instance Storage")
_MICROSECOND = 1e-6
#: nvme-cli's names of each limit's counter; the counters of instance limits have several names.
_NAMES = {
    "volume_iops": ("ebs_volume_performance_exceeded_iops",),
    "volume_throughput": ("ebs_volume_performance_exceeded_tp",),
    "instance_iops": (
        "ec2_instance_ebs_performance_exceeded_iops",
        "ec2_instance_performance_exceeded_iops",
        "instance_store_volume_performance_exceeded_iops",
    ),
    "instance_throughput": (
        "ec2_instance_ebs_performance_exceeded_tp",
        "ec2_instance_performance_exceeded_tp",
        "instance_store_volume_performance_exceeded_tp",
    ),
}
_PAGE = 0xD0
_PAGE_BYTES = 4096
#: A magic number, a version, six totals, then the four counters in the order of `_NAMES`.
_LAYOUT = struct.Struct("<II6Q4Q")
#: Magic numbers of an EBS volume, and of instance storage.
_MAGIC = frozenset({0x3C23B510, 0xEC2C0D7E})

#: Seconds over each limit since the volume was attached, by limit.
Limits = Mapping[str, float]


def has_limits(controller: Controller) -> bool:
    """Whether a controller may count its time over limits: it is one of Amazon's models."""
    return controller.model.startswith(_MODELS)


def limits_of_stats(document: Mapping[str, Any]) -> Limits:
    """Seconds over each limit, from `nvme amzn stats`. Raises DriveError if the output has none of the counters."""
    found = {limit: whole_number(document, *names) for limit, names in _NAMES.items()}
    known = {limit: value * _MICROSECOND for limit, value in found.items() if value is not None}
    if not known:
        raise DriveError(Reason.OUTPUT, "the statistics of the volume have no time over a limit")
    return known


def limits_of_page(page: bytes) -> Limits:
    """Seconds over each limit, from the bytes of page D0h. Raises DriveError if the page has another format."""
    if len(page) < _LAYOUT.size:
        raise DriveError(Reason.OUTPUT, f"page D0h has {len(page)} bytes instead of {_LAYOUT.size}")
    magic, _version, *numbers = _LAYOUT.unpack_from(page)
    if magic not in _MAGIC:
        raise DriveError(Reason.OUTPUT, f"page D0h has another format: it begins with {magic:#010x}")
    return dict(zip(_NAMES, (each * _MICROSECOND for each in numbers[-len(_NAMES) :]), strict=True))


def _by_stats(drive: Commands) -> Limits:
    return limits_of_stats(drive.ask("amzn", "stats"))


def _by_page(drive: Commands) -> Limits:
    return limits_of_page(drive.ask_page(_PAGE, _PAGE_BYTES))


LimitSource = Callable[[Commands], Limits]


def find_limit_source(drive: Commands, controller: Controller) -> LimitSource | None:
    """Function that reads the volume's seconds over its limits; None if the volume does not count them. Raises
    DriveError when the drive times out, so that this cannot be determined now."""
    if not has_limits(controller):
        return None
    for source in (_by_stats, _by_page):
        try:
            source(drive)
        except DriveError as error:
            if error.reason is Reason.TIMEOUT:
                raise
        else:
            return source
    return None
