"""Choose one of the drive's logs that count bytes written to flash; the choice is made once and then kept.

Logs count differently, so changing between them would make the counter jump.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cliffwatch_drive_exporter.commands import Commands, DriveError, Reason
from cliffwatch_drive_exporter.logs import Abilities, Media, abilities, endurance_group_media, fdp_media, ocp_media


@dataclass(frozen=True, slots=True)
class MediaSource:
    """A log that counts media bytes: its name, whether a drive may have it, and how it is read."""

    name: str
    may_have: Callable[[Abilities], bool]
    ask: Callable[[Commands], Media]


#: Logs that count media bytes, the most exact first. With several endurance groups, no log of a group counts the whole
#: drive, so none is used.
SOURCES: Sequence[MediaSource] = (
    MediaSource("ocp", lambda has: True, lambda drive: ocp_media(drive.ask("ocp", "smart-add-log"))),
    MediaSource(
        "fdp",
        lambda has: has.flexible_data_placement and has.endurance_groups == 1,
        lambda drive: fdp_media(drive.ask("fdp", "stats", "--endgrp-id=1")),
    ),
    MediaSource(
        "endurance-group",
        lambda has: has.endurance_groups == 1,
        lambda drive: endurance_group_media(drive.ask("endurance-log", "--group-id=1")),
    ),
)


def find_source(drive: Commands) -> MediaSource | None:
    """First media source that can be read; None if the drive has none. Raises DriveError if `id-ctrl` fails, or if a
    query times out: the drive may have that log all the same."""
    has = abilities(drive.ask("id-ctrl"))
    for source in SOURCES:
        if not source.may_have(has):
            continue
        try:
            source.ask(drive)
        except DriveError as error:
            if error.reason is Reason.TIMEOUT:
                # A drive that is slow now may have this log all the same.
                raise
        else:
            return source
    return None
