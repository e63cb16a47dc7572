"""Names of series in words: `end_to_end.p999` is `end to end p99.9`, `device.write_latency` is `write latency of …`."""

from collections.abc import Mapping

#: The prefix of a device's series, and what stands for all devices together.
DEVICE = "device"
ALL_DEVICES = "all drives"
_QUANTILES = {"p50": "p50", "p90": "p90", "p99": "p99", "p999": "p99.9", "p9999": "p99.99"}


def series_words(name: str, device_names: Mapping[str, str] | None = None) -> str:
    """What a series measures, from its name: `publish p99`, `write latency of nvme0n1`.

    `device_names`: kernel names by `DriveId`; with only one, series over all devices get that name.
    """
    subject, _, rest = name.partition(".")
    if subject != DEVICE:
        return " ".join(_QUANTILES.get(part, part.replace("_", " ")) for part in filter(None, (subject, rest)))
    measure, _, device = rest.partition(".")
    known = device_names or {}
    drive = known.get(device, device) or (next(iter(known.values())) if len(known) == 1 else ALL_DEVICES)
    return f"{measure.replace('_', ' ')} of {drive}"
