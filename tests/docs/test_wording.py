"""Texts and names use the field's words: what a reader sees, and what a programmer calls."""

import ast
import re
from collections.abc import Iterator

import yaml
from testkit.checkout import ROOT, tracked

#: Words of our own for which the field has a standard one, with that.
WORDS = {
    r"(?:is |are |was |were )?told|tells? (?:of|nothing|whether|why)": "reports, records, receives",
    r"taken? home|brought home|bring home|errands?": "collect, collection",
    r"carr(?:y|ies|ied|ying) (?:it |the run |a run |one run |that run )?out": "execute, run",
    r"in hand|lost its mind|last words|put aside|bad days|out of breath": "owns, final output, set aside, overloaded",
    r"unborn|leftovers?|left over": "pending, orphaned",
    r"lets? go(?: of)?": "release",
    r"or the like|and the like|a like": "or similar",
    r"what is usual|restless(?:ness)?|transients": "recent level, noisy, excursion",
    r"asked and given|alert over|by the watching": "target and achieved, resolved, monitoring overhead",
    r"what watching it cost|as cron writes it": "monitoring overhead, cron expression",
    r"there is no such thing|is done without|are done without": "not found, unavailable",
}
#: For these a subject that exists: the user, the client, the operator, another process. Also in the names of tests.
SUBJECTS = r"(?<![^\W_])(?:nobody|whoever|somebody|anybody)(?![^\W_])"
FORBIDDEN = re.compile(rf"\b(?:{'|'.join(WORDS)})\b|{SUBJECTS}", re.IGNORECASE)
#: `tell_apart` is a field of report.json.
NAMES = re.compile(
    r"take_home|carry_out|carried_out|unborn|(?:^|_)(?:un)?told|(?:^|_)tells?(?:_(?!apart$)|$)|errand|last_words|leftover"
    r"|nobody|whoever|somebody|anybody"
)
SOURCES = ("*.py", "*.rs", "*.c", "*.h", "*.toml", "*.sh", "*.yaml", "*.yml", "setup", "Makefile", ".ci")
PACKAGES = ("service/cliffwatch", "exporters/drive", "dashboards/builder", "testkit")


def documented() -> Iterator[tuple[str, str]]:
    """Documentation, runbooks, pages and their scripts, by path."""
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "alerts/runbooks/*.md",
        "service/**/*.html",
        "service/cliffwatch/web/static/*.js",
    ):
        for path in ROOT.glob(pattern):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    for path in (ROOT / "alerts" / "rules").glob("*.yaml"):
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]:
            for rule in group["rules"]:
                yield f"{path.name} {rule.get('alert')}", " ".join((rule.get("annotations") or {}).values())
    for path in (ROOT / "service" / "cliffwatch" / "workloads").glob("*.yaml"):
        yield path.name, path.read_text(encoding="utf-8")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Texts in code; commands of the command line have theirs in docstrings, so those count too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg


def test_documentation_pages_and_alerts_use_the_words_of_the_field() -> None:
    texts = [(place, " ".join(text.split())) for place, text in documented()]
    assert len(texts) > 80
    found = [
        f"{place}: …{text[max(0, m.start() - 40) : m.end() + 20]}…"
        for place, text in texts
        for m in FORBIDDEN.finditer(text)
    ]
    assert not found, "\n".join(found)


def test_texts_in_code_use_the_words_of_the_field() -> None:
    texts = [(f"{path}:{line}", " ".join(text.split())) for path, tree in modules() for line, text in strings(tree)]
    assert len(texts) > 3000
    found = [f"{place}: {match[0]!r}" for place, text in texts for match in FORBIDDEN.finditer(text)]
    assert not found, "\n".join(found)


def test_comments_of_every_source_use_the_words_of_the_field() -> None:
    sources = [path for path in tracked(*SOURCES) if path.name != "test_wording.py"]
    assert len(sources) > 700
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match[0]!r}"
        for path in sources
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for match in FORBIDDEN.finditer(line)
    ]
    assert not found, "\n".join(found)


def test_names_in_code_are_the_words_of_the_field() -> None:
    found = [f"{path}:{line}: {name}" for path, tree in modules() for line, name in names(tree) if NAMES.search(name)]
    assert not found, "\n".join(found)


def test_the_words_are_found_where_they_stand() -> None:
    for text in (
        "the drive is told of it",
        "carried the run out",
        "what is usual",
        "an errand",
        "let go of",
        "fio or the like",
        "Nobody's",
        "test_nobody_waits",
    ):
        assert FORBIDDEN.search(text), text
    for name in ("take_home", "_untold", "told", "tell_run", "carry_out", "UNBORN".lower()):
        assert NAMES.search(name), name
