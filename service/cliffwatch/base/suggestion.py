"""Suggest the known name that a mistyped one resembles."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

#: Threshold of likeness (0…1) from which a known name is suggested for a misspelled one.
_ALIKE = 0.6
#: Margin by which a nested name has to be more alike than a name that is valid where the name was typed.
_NESTED_LEAD = 0.15
#: A longer input is no mistyped name, and the time to compare it grows with the square of its length.
_LENGTH_LIMIT = 100


def did_you_mean(typed: str, known: Iterable[str], nested: Iterable[str] = ()) -> str:
    """End of an error message, such as `; did you mean 'quick-soak'?`; empty where no known name is similar.

    `nested` are dotted names, of which the last part is compared.
    """
    if len(typed) > _LENGTH_LIMIT:
        return ""
    form = _form(typed)
    ranked = [(_likeness(form, name), name) for name in known]
    ranked += [(_likeness(form, name.rpartition(".")[2]) - _NESTED_LEAD, name) for name in nested]
    likeness, name = max(ranked, key=lambda item: item[0], default=(0.0, ""))
    return f"; did you mean {name!r}?" if likeness >= _ALIKE else ""


def _likeness(form: str, name: str) -> float:
    return SequenceMatcher(a=_form(name), b=form).ratio()


def _form(name: str) -> str:
    """Normalised form of a name: lower case, `_` for `-`, and `_size` for a final `_byte` or `_bytes`."""
    return re.sub(r"_bytes?$", "_size", name.lower().replace("-", "_"))
