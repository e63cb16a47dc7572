"""Every command that the README and the documentation show."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from testkit.checkout import ROOT

#: docs/cli.md is written from the commands themselves.
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name != "cli.md"),
]
_PROGRAM = r"cliffwatch(?:-load|-drive)?|make|python3?|docker(?:-compose)?|curl|cp|cargo|\S+/check"
_COMMAND = re.compile(rf"(?:sudo |[A-Z_]+=\S+ )*(?:{_PROGRAM})(?: |$)")
_INLINE = re.compile(r"`(cliffwatch [a-z-][^`]*)`")
_SERVICE = ROOT / "service" / "cliffwatch"
#: Where people are given a command by the program itself: its pages, its messages, its alerts.
PROGRAM_TEXTS = sorted(
    path
    for ending in ("html", "js", "py")
    for path in _SERVICE.rglob(f"*.{ending}")
    if "node_modules" not in path.parts
) + sorted((ROOT / "alerts").rglob("*.yaml"))
_IN_HTML = re.compile(r"<code>(cliffwatch [a-z-][^<]*)</code>")


@dataclass(frozen=True, slots=True)
class Command:
    """A command as a page shows it, without the remark behind it."""

    page: str
    line: int
    text: str


def shown_commands() -> Iterator[Command]:
    """Those of indented and fenced blocks, in the order of the pages."""
    for page in PAGES:
        fenced, text = False, ""
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("```"):
                fenced = not fenced
                continue
            if not (text or fenced or line.startswith("    ")):
                continue
            stripped = line.strip()
            text = f"{text} {stripped}" if text else stripped if _COMMAND.match(stripped) else ""
            if text.endswith("\\"):
                text = text.removesuffix("\\").rstrip()
            elif text:
                yield Command(str(page.relative_to(ROOT)), number, re.sub(r"\s+#.*| {4,}[a-z].*", "", text))
                text = ""


def inline_commands() -> Iterator[Command]:
    """Those within sentences and tables of the documentation."""
    for page in PAGES:
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            for text in _INLINE.findall(line):
                yield Command(str(page.relative_to(ROOT)), number, text)


def program_commands() -> Iterator[Command]:
    """Those that pages and messages of the program give, with a word in place of what they fill in."""
    for path in PROGRAM_TEXTS:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for text in _INLINE.findall(line) + _IN_HTML.findall(line):
                filled = re.sub(r"\{\{?[^}]*\}\}?", "FILLED-IN", text)
                yield Command(str(path.relative_to(ROOT)), number, filled.removesuffix(" …"))
