"""manifest.json, the first file of a bundle: Cliffwatch version, run, and size and SHA-256 of every other file."""

import json
import re
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.faults import faults_of
from cliffwatch.base.finite_json import strict_json
from cliffwatch.base.plain_values import plain
from cliffwatch.journal import files
from cliffwatch.model.document import Name
from cliffwatch.model.run_state import VerdictName
from cliffwatch.telemetry import parts

#: Increased with every change of a bundle's content, so that older versions refuse it.
FORMAT_VERSION = 1
FORMAT = "cliffwatch-bundle"
MANIFEST = "manifest.json"
DASHBOARDS = "dashboards"

#: Journal files that a bundle may hold. Logs and worker.json are left out: they describe the machine, not the run.
JOURNAL_FILES = (files.ORDER, files.WORKLOAD, files.FACTS, files.EVENTS, files.WINDOWS, files.LATENCY)
REQUIRED_FILES = (files.ORDER, files.EVENTS)
REPORT_FILES = (files.REPORT_JSON, files.REPORT_HTML)
_TELEMETRY = re.compile(rf"{parts.DIRECTORY}/(index\.json|part-\d{{6,9}}\.parquet)")
_DASHBOARD = re.compile(rf"{DASHBOARDS}/[a-z0-9][a-z0-9-]{{0,40}}\.json")

#: Limits of a bundle. A run of 36 h on two drives has some 50 MB and 450 files.
UNPACKED_LIMIT_BYTES = 16 * 1024**3
FILE_LIMIT = 20_000
MANIFEST_LIMIT_BYTES = 4 * 1024**2


class BundledFile(BaseModel):
    """A file of the bundle, by its path below the bundle's one directory."""

    path: str
    size_bytes: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Manifest(BaseModel):
    """Manifest of a bundle. `files` are in archive order, below a directory named after the run."""

    format: Literal["cliffwatch-bundle"] = "cliffwatch-bundle"
    format_version: int = FORMAT_VERSION
    cliffwatch_version: str
    run_id: Name
    verdict: VerdictName
    files: Annotated[list[BundledFile], Field(max_length=FILE_LIMIT)]

    def to_bytes(self) -> bytes:
        return (json.dumps(self.model_dump(mode="json"), indent=1) + "\n").encode()

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)


def may_hold(path: str) -> bool:
    """Whether a bundle may hold a file with this path: only known names, so that no path leads out of the journal."""
    return (
        path in JOURNAL_FILES
        or path in REPORT_FILES
        or _TELEMETRY.fullmatch(path) is not None
        or _DASHBOARD.fullmatch(path) is not None
    )


def is_kept(path: str) -> bool:
    """Whether an import puts the file into the journal. Reports are built again, so that no imported page is shown as
    this service's own."""
    return path in JOURNAL_FILES or PurePosixPath(path).parts[0] == parts.DIRECTORY


def read_manifest(content: bytes) -> Manifest:
    """Parse a manifest. Raises Problem(bundle_invalid) if malformed, of a newer version, or with a file not allowed."""
    try:
        body = plain(strict_json(content))
    except ValueError as error:
        raise invalid(MANIFEST, f"this is not JSON: {error}") from error
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise invalid("format", f"this is not {FORMAT!r}; give a file that `cliffwatch run bundle` wrote")
    version = body.get("format_version")
    if type(version) is not int:
        raise invalid(
            "format_version", f"{str(version)[:20]!r} is not a whole number; `cliffwatch run bundle` writes one"
        )
    if not 1 <= version <= FORMAT_VERSION:
        maker = str(body.get("cliffwatch_version"))[:40]
        words = f"{str(version)[:20]} is not known here, up to {FORMAT_VERSION} is; open it with Cliffwatch {maker}"
        raise invalid("format_version", words)
    try:
        manifest = Manifest.model_validate(body)
    except ValidationError as error:
        raise Problem(Code.BUNDLE_INVALID, "the bundle's manifest is not valid", faults_of(error)[:20]) from error
    _check_files(manifest)
    return manifest


def _check_files(manifest: Manifest) -> None:
    paths = [file.path for file in manifest.files]
    for path in paths:
        if not may_hold(path):
            raise invalid("files", f"a bundle holds no file {path[:200]!r}")
    if len(set(paths)) < len(paths):
        raise invalid("files", "a path stands there twice")
    for path in REQUIRED_FILES:
        if path not in paths:
            raise invalid("files", f"{path} is missing, so there is no run in it")
    if manifest.size_bytes > UNPACKED_LIMIT_BYTES:
        words = f"{manifest.size_bytes} bytes are more than a bundle may unpack to, {UNPACKED_LIMIT_BYTES}"
        raise invalid("files", words)


def invalid(field: str, message: str) -> Problem:
    return Problem(Code.BUNDLE_INVALID, "the bundle cannot be opened", [FieldFault(field, message)])


def taken(run_id: str) -> Problem:
    fault = FieldFault("run_id", "an imported run keeps its id; look at the run that has it, or import elsewhere")
    return Problem(Code.CONFLICT, f"there is a run {run_id} already", [fault])
