"""Description of an aging drive: `drive.json`, written by the program and read strictly, since users edit it."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, StrictBool, StrictInt, StrictStr, ValidationError

from cliffwatch.base.durable import write_json_durably
from cliffwatch.base.faults import faults_of
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.model.document import Strict

UNPARTITIONED_MAXIMUM = 0.9


class FileSystem(StrEnum):
    """File system to make on the drive; none leaves the disk as it is."""

    EXT4 = "ext4"
    XFS = "xfs"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Description:
    """Description of an aging drive, as requested when it was made.

    `unpartitioned` is the share at the end of the disk that the file system does not use, `formatted` whether the file
    system has been made. `keeper` is the process that needs the drive: when that process ends, the drive is orphaned.
    Without a keeper (None) the drive stays until it is detached. `is_kept`: the drive was complete before `keeper`
    began to attach it again, so when `keeper` ends, the drive is detached and never removed.
    """

    serial: str
    file_system: FileSystem = FileSystem.EXT4
    discard: bool = False
    unpartitioned: float = 0.0
    formatted: bool = False
    keeper: ProcessIdentity | None = None
    is_kept: bool = False

    def is_abandoned(self) -> bool:
        return self.keeper is not None and not self.keeper.is_alive()


class _Keeper(Strict):
    pid: StrictInt
    start_ticks: StrictInt
    boot_id: StrictStr


class _Stored(Strict):
    """File format of the description."""

    serial: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    file_system: FileSystem
    discard: StrictBool
    unpartitioned: Annotated[float, Field(ge=0, le=UNPARTITIONED_MAXIMUM)]
    formatted: StrictBool
    keeper: _Keeper | None
    #: Missing in older descriptions.
    is_kept: StrictBool = False


def read_description(path: Path) -> Description:
    """Read a description. Raises OSError, and ValueError that says what is wrong with the file."""
    try:
        stored = _Stored.model_validate(json.loads(path.read_text(encoding="utf-8")))
        keeper = ProcessIdentity.from_json(stored.keeper.model_dump()) if stored.keeper else None
    except ValidationError as error:
        faults = (f"{fault.field}: {fault.message}".removeprefix(": ") for fault in faults_of(error, model=_Stored))
        raise ValueError("; ".join(faults)) from error
    except UnicodeDecodeError as error:
        raise ValueError("it is not text in UTF-8") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError("it is not JSON") from error
    return Description(**{**dict(stored), "keeper": keeper})


def write_description(path: Path, description: Description) -> None:
    body = asdict(description) | {"keeper": description.keeper.to_json() if description.keeper else None}
    write_json_durably(path, body)
