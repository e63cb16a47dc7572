"""Error codes: every refusal has a stable code, an HTTP status and a title, in one table.

`Problem` is the one exception that reaches a user: the API writes it as application/problem+json (RFC 9457), the
command line as one line per fault. A code never changes its meaning; docs/errors.md explains each.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Code(StrEnum):
    """The stable `code` of a problem."""

    BAD_REQUEST = "bad_request"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    BODY_TOO_LARGE = "body_too_large"
    TOO_MANY_STREAMS = "too_many_streams"
    CONFLICT = "conflict"
    WRONG_STATE = "wrong_state"
    WORKLOAD_INVALID = "workload_invalid"
    SCHEDULE_INVALID = "schedule_invalid"
    PAGE_TOKEN_INVALID = "page_token_invalid"
    BUNDLE_INVALID = "bundle_invalid"
    TARGET_UNSAFE = "target_unsafe"
    TARGET_MISSING = "target_missing"
    TARGET_SILENT = "target_silent"
    SPACE_INSUFFICIENT = "space_insufficient"
    DRIVE_INVALID = "drive_invalid"
    DRIVE_UNAVAILABLE = "drive_unavailable"
    COMPONENT_MISSING = "component_missing"
    JOURNAL_UNREADABLE = "journal_unreadable"
    JOURNAL_UNWRITABLE = "journal_unwritable"
    REPORT_NOT_READY = "report_not_ready"
    SERVICE_UNREACHABLE = "service_unreachable"
    NOT_READY = "not_ready"
    DATABASE_UNAVAILABLE = "database_unavailable"
    DATABASE_NEWER = "database_newer"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """Kind of error: its HTTP `status`, and the title of all problems of the kind."""

    status: int
    title: str


KINDS: dict[Code, ErrorKind] = {
    Code.BAD_REQUEST: ErrorKind(422, "The request is not valid."),
    Code.UNAUTHENTICATED: ErrorKind(401, "A valid bearer token is required."),
    Code.FORBIDDEN: ErrorKind(403, "The token's scope does not allow this."),
    Code.NOT_FOUND: ErrorKind(404, "Not found."),
    Code.METHOD_NOT_ALLOWED: ErrorKind(405, "This resource does not support that method."),
    Code.BODY_TOO_LARGE: ErrorKind(413, "The request's body is too large."),
    Code.TOO_MANY_STREAMS: ErrorKind(429, "There are too many live streams."),
    Code.CONFLICT: ErrorKind(409, "Something else has this name."),
    Code.WRONG_STATE: ErrorKind(409, "The run's state does not allow this."),
    Code.WORKLOAD_INVALID: ErrorKind(422, "The workload is not valid."),
    Code.SCHEDULE_INVALID: ErrorKind(422, "The schedule is not valid."),
    Code.PAGE_TOKEN_INVALID: ErrorKind(422, "The page token is not valid here."),
    Code.BUNDLE_INVALID: ErrorKind(422, "The bundle cannot be opened."),
    Code.TARGET_UNSAFE: ErrorKind(409, "The safety gate refuses to write to this target."),
    Code.TARGET_MISSING: ErrorKind(422, "The target does not exist."),
    Code.TARGET_SILENT: ErrorKind(503, "The target does not answer."),
    Code.SPACE_INSUFFICIENT: ErrorKind(409, "There is not enough space."),
    Code.DRIVE_INVALID: ErrorKind(422, "The drive's settings are not valid."),
    Code.DRIVE_UNAVAILABLE: ErrorKind(503, "The drive cannot be attached on this machine."),
    Code.COMPONENT_MISSING: ErrorKind(503, "A required program is not installed."),
    Code.JOURNAL_UNREADABLE: ErrorKind(500, "The run's journal cannot be read."),
    Code.JOURNAL_UNWRITABLE: ErrorKind(503, "The journals' disk takes nothing at the moment."),
    Code.REPORT_NOT_READY: ErrorKind(409, "The run has no report yet."),
    Code.SERVICE_UNREACHABLE: ErrorKind(503, "The service does not answer."),
    Code.NOT_READY: ErrorKind(503, "The service is not ready."),
    Code.DATABASE_UNAVAILABLE: ErrorKind(503, "The database cannot be used at the moment."),
    Code.DATABASE_NEWER: ErrorKind(503, "The database schema is from a newer version."),
    Code.INTERNAL: ErrorKind(500, "The service failed to handle the request."),
}


@dataclass(frozen=True, slots=True)
class FieldFault:
    """One fault in the input: the dotted path of the field, and what is wrong with it and what would be right."""

    field: str
    message: str


@dataclass(slots=True)
class Problem(Exception):
    """A refusal that a user sees: what was wrong (`detail`) and, where input was at fault, which fields."""

    code: Code
    detail: str
    faults: list[FieldFault] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [self.detail, *(f"  {fault.field}: {fault.message}" for fault in self.faults)]
        return "\n".join(lines)

    @property
    def kind(self) -> ErrorKind:
        return KINDS[self.code]
