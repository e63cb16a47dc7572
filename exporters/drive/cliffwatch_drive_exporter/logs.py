"""Parse nvme-cli's JSON: SMART, OCP C0, FDP statistics and the endurance-group log, in base units.

A field that the drive or the version of nvme-cli does not give is None, never zero. Sources of units and layouts: NVM
Express Base Specification 2.0 (SMART / Health Information, Endurance Group Information, FDP Statistics, Identify
Controller); OCP Datacenter NVMe SSD Specification (log C0h).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cliffwatch_drive_exporter.commands import DriveError, Reason

#: A data unit of the SMART log is a thousand blocks of 512 bytes.
DATA_UNIT_BYTES = 512_000
#: The endurance-group log counts billions of bytes, rounded up.
ENDURANCE_UNIT_BYTES = 1_000_000_000
_KELVIN = 273
#: Fields that are read from the SMART log.
_SMART_FIELDS = ("data_units_written", "temperature", "avail_spare", "percent_used", "percentage_used", "media_errors")
_NAMES_SHOWN = 8
_HIGH_WORD = 1 << 64
#: GUID of OCP's page C0h; other makers use the page number for pages of their own.
OCP_PAGE = "0xafd514c97c6f4f9ca4f2bfea2810afc5"
_ENDURANCE_GROUPS_BIT = 4
_FLEXIBLE_DATA_PLACEMENT_BIT = 19


@dataclass(frozen=True, slots=True)
class SmartHealth:
    """The SMART log. Bytes are since the drive was made; ratios are from 0 to 1, but `percentage_used_ratio` may be
    above 1."""

    host_written_bytes: int | None
    temperature_celsius: float | None
    spare_ratio: float | None
    percentage_used_ratio: float | None
    media_errors: int | None


@dataclass(frozen=True, slots=True)
class Media:
    """Bytes programmed to the flash since the drive was made, and the share of blocks that is free."""

    written_bytes: int
    free_blocks_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Abilities:
    """Features of the controller that may count media bytes, as it reports them."""

    endurance_groups: int
    flexible_data_placement: bool


def health(document: Mapping[str, Any]) -> SmartHealth:
    """SMART health, from `nvme smart-log`. Raises DriveError if the output is not a SMART log. If all values are zero,
    the drive reports nothing, and all fields are None."""
    if "data_units_written" not in document:
        named = ", ".join(sorted(document)[:_NAMES_SHOWN]) or "nothing"
        raise DriveError(Reason.OUTPUT, f"the SMART log has no data_units_written; it has {named}")
    if not any(whole_number(document, name) for name in _SMART_FIELDS):
        return SmartHealth(None, None, None, None, None)
    # By the specification, 0 means that the drive does not report the value.
    units = whole_number(document, "data_units_written") or None
    kelvin = whole_number(document, "temperature") or None
    return SmartHealth(
        host_written_bytes=None if units is None else units * DATA_UNIT_BYTES,
        temperature_celsius=None if kelvin is None else float(kelvin - _KELVIN),
        spare_ratio=_percentage(document, "avail_spare"),
        percentage_used_ratio=_percentage(document, "percent_used", "percentage_used"),
        media_errors=whole_number(document, "media_errors"),
    )


def abilities(document: Mapping[str, Any]) -> Abilities:
    """Features of the controller, from `nvme id-ctrl`."""
    attributes = whole_number(document, "ctratt") or 0
    has_groups = bool(attributes >> _ENDURANCE_GROUPS_BIT & 1)
    groups = (whole_number(document, "endgidmax") or 0) if has_groups else 0
    return Abilities(groups, bool(attributes >> _FLEXIBLE_DATA_PLACEMENT_BIT & 1))


def ocp_media(document: Mapping[str, Any]) -> Media:
    """Media bytes and free blocks, from `nvme ocp smart-add-log`, whose field names differ between versions. Raises
    DriveError if the output is not an OCP log."""
    page = _first(document, "Log page GUID", "log_page_guid")
    if page is not None and str(page).lower() != OCP_PAGE:
        raise DriveError(Reason.OUTPUT, f"page C0h has another vendor's format: {page}")
    words = _first(document, "Physical media units written", "physical_media_units_written")
    if not isinstance(words, Mapping):
        raise DriveError(Reason.OUTPUT, "the OCP log has no physical media units written")
    high, low = whole_number(words, "hi"), whole_number(words, "lo")
    if high is None or low is None:
        raise DriveError(Reason.OUTPUT, "the OCP log's physical media units written have no hi or lo")
    return Media(high * _HIGH_WORD + low, _percentage(document, "Percent free blocks", "percent_free_blocks"))


def fdp_media(document: Mapping[str, Any]) -> Media:
    """Media bytes, from `nvme fdp stats`: media bytes with metadata written. Raises DriveError if these are missing."""
    return Media(_required(document, "mbmw", "the FDP statistics have no mbmw"))


def endurance_group_media(document: Mapping[str, Any]) -> Media:
    """Media bytes, from `nvme endurance-log`. Raises DriveError if the output is not an endurance-group log, or if the
    group does not report them."""
    units = _required(document, "media_units_written", "the endurance-group log has no media_units_written")
    if units == 0:
        raise DriveError(Reason.OUTPUT, "the endurance group does not report media_units_written")
    return Media(units * ENDURANCE_UNIT_BYTES)


def _required(document: Mapping[str, Any], name: str, complaint: str) -> int:
    number = whole_number(document, name)
    if number is None:
        raise DriveError(Reason.OUTPUT, complaint)
    return number


def _first(document: Mapping[str, Any], *names: str) -> Any:
    return next((document[name] for name in names if name in document), None)


def _percentage(document: Mapping[str, Any], *names: str) -> float | None:
    number = whole_number(document, *names)
    return None if number is None else number / 100


def whole_number(document: Mapping[str, Any], *names: str) -> int | None:
    """Whole number at the first key of `names` that exists; None if it is missing, negative or not a number. Some
    versions of nvme-cli write large numbers as text, or as floating point."""
    value = _first(document, *names)
    if isinstance(value, Mapping):
        # With `--verbose` some numbers are split into parts, and `value` is the whole.
        value = value.get("value")
    if isinstance(value, str):
        try:
            value = int(value.replace(",", "").strip(), 0)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        return None
    return int(value)
