"""Why a file that somebody wrote cannot be read, in one line and in the words of whoever has to mend it."""

import yaml


def why_unreadable(error: OSError | UnicodeDecodeError | yaml.YAMLError) -> str:
    """What is wrong, and where in the file, counted as editors count; the caller names the file."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem and error.problem_mark:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: {error.problem}"
    return " ".join(str(error).split())
