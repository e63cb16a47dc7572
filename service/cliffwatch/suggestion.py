"""What somebody who mistyped a name may have meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(typed: str, known: Iterable[str]) -> str:
    """The end of a sentence, such as `; did you mean 'quick-soak'?`; empty where nothing known is like it."""
    # Compared in small letters, with one word separator, since that is what people mix up.
    by_form = {_form(name): name for name in known}
    matches = get_close_matches(_form(typed), by_form, n=1, cutoff=0.6)
    return f"; did you mean {by_form[matches[0]]!r}?" if matches else ""


def _form(name: str) -> str:
    return name.lower().replace("-", "_")
