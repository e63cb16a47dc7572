"""Password files: read from one directory of the state directory only."""

import os
from pathlib import Path

from cliffwatch.base.errors import FieldFault

#: Directory in the state directory from which alone passwords are read. A run may name any server, which is sent the
#: password: a client that may start a run must not be able to have another file sent.
SECRETS = "secrets"


def misplaced_secret(field: str, password_file: str, state_directory: Path) -> list[FieldFault]:
    """Fault of a password file that lies elsewhere; empty for one in its place."""
    place = state_directory / SECRETS
    if Path(os.path.normpath(password_file)).is_relative_to(place):
        return []
    words = f"passwords are read from {place} only; put the file there, readable by the service alone, and name it"
    return [FieldFault(field, words)]
