"""Runbooks of the alerts as HTML, with the labels of the alert that leads there filled into their commands."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

from markdown_it import MarkdownIt
from markupsafe import Markup

from cliffwatch.base.resources import ALERTS_DIRECTORY
from cliffwatch.model.settings import Settings

_DIRECTORY = ALERTS_DIRECTORY / "runbooks"
#: Placeholders of commands, by the label of the alert that replaces each.
PLACEHOLDERS = {"run_id": "RUN", "operation": "OPERATION", "device": "DEVICE", "mountpoint": "MOUNTPOINT"}
#: Placeholders in a paragraph that explains them.
_EXPLAINED = re.compile(r"`(\$?[A-Z_]+)`")
#: Values that are filled in: none that could end a string of PromQL or a word of a shell command.
_PLAIN = re.compile(r"[A-Za-z0-9/][A-Za-z0-9._:/@+-]{0,199}")


@cache
def runbooks() -> Mapping[str, Path]:
    """Files of the runbooks by the name of their alert, in order of the names."""
    return {path.stem: path for path in sorted(_DIRECTORY.glob("*.md"))}


def runbook_link(alert: str, labels: Mapping[str, object]) -> str | None:
    """Path of an alert's runbook, with the alert's labels as query; None for an alert that has no runbook here."""
    if alert not in runbooks():
        return None
    query = urlencode(plain_labels(labels))
    return f"/runbooks/{alert}" + (f"?{query}" if query else "")


def plain_labels(labels: Mapping[str, object]) -> dict[str, str]:
    """The labels that replace placeholders, without those whose values would have to be quoted in a command."""
    found = {name: str(labels[name]) for name in PLACEHOLDERS if name in labels}
    return {name: value for name, value in found.items() if _PLAIN.fullmatch(value)}


def rendered(text: str, values: Mapping[str, str]) -> Markup:
    """Markdown as HTML, without raw HTML; `values` replace their placeholders in code blocks. The paragraph that
    explains the placeholders is left out if all of them are replaced."""
    markdown = MarkdownIt("commonmark", {"html": False})
    tokens = markdown.parse(text)
    for index, token in enumerate(tokens):
        named = _EXPLAINED.findall(token.content) if token.type == "inline" else []
        if named and token.content.startswith("`") and values.keys() >= set(named):
            del tokens[index - 1 : index + 2]
            break
    for token in tokens:
        if token.type in {"code_block", "fence"}:
            token.content = filled(token.content, values)
    # Its text is the repository's own, and the renderer escapes what is filled in.
    return Markup(markdown.renderer.render(tokens, markdown.options, {}))  # noqa: S704


def filled(command: str, values: Mapping[str, str]) -> str:
    """A command with the placeholders that have a value replaced."""
    return re.sub(r"\$?\b[A-Z][A-Z_]+\b", lambda found: values.get(found[0], found[0]), command)


def values_of(settings: Settings, labels: Mapping[str, str]) -> dict[str, str]:
    """What replaces each placeholder, from the settings and the alert's labels."""
    values = {PLACEHOLDERS[name]: value for name, value in labels.items()}
    if run := values.get("RUN"):
        values["RUN_DIRECTORY"] = str(settings.runs_directory / run)
    if settings.prometheus_url is not None:
        values["$PROMETHEUS"] = settings.prometheus_url
    values["$ALERTMANAGER"] = f"http://127.0.0.1:{settings.alertmanager_port}"
    return values


def meaning_of(text: str) -> str:
    """The first sentence of a runbook's section Meaning, on one line."""
    _, _, meaning = text.partition("## Meaning\n")
    paragraph = " ".join(meaning.strip().split("\n\n")[0].split())
    return paragraph.split(". ")[0].rstrip(".") + "."
