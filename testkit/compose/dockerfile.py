"""deploy/Dockerfile, taken apart: its arguments and its stages."""

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from testkit.checkout import ROOT

DOCKERFILE = ROOT / "deploy" / "Dockerfile"


@dataclass(frozen=True, slots=True)
class Copy:
    """COPY: what, from where (None is the repository), to where."""

    sources: list[str]
    origin: str | None
    target: str


@dataclass(slots=True)
class Stage:
    """What stands between one FROM and the next."""

    name: str
    base: str
    copies: list[Copy] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    others: dict[str, str] = field(default_factory=dict)


def parse() -> tuple[dict[str, str], dict[str, Stage]]:
    """The arguments with their defaults, and the stages in order by name. Fails on what it does not know."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    arguments: dict[str, str] = {}
    stages: dict[str, Stage] = {}
    for line in filter(None, re.sub(r"\\\n\s*", "", text).splitlines()):
        instruction, _, rest = line.partition(" ")
        if instruction == "ARG":
            name, _, arguments[name] = rest.partition("=")
        elif instruction == "FROM":
            base, _, name = rest.partition(" AS ")
            stage = stages[name] = Stage(name, re.sub(r"\$\{(\w+)\}", lambda found: arguments[found[1]], base))
        elif instruction == "COPY":
            words = rest.split()
            options = [word for word in words if word.startswith("--")]
            *sources, target = [word for word in words if not word.startswith("--")]
            assert all(option.startswith("--from=") for option in options), line
            stage.copies.append(Copy(sources, options[0].removeprefix("--from=") if options else None, target))
        elif instruction == "RUN":
            stage.commands.extend(part.strip() for part in rest.split("&&"))
        else:
            assert instruction in ("WORKDIR", "ENV", "USER", "ENTRYPOINT", "LABEL"), line
            stage.others[instruction] = rest
    return arguments, stages


ARGUMENTS, STAGES = parse()


def files() -> set[str]:
    """The repository's, with those that are not committed yet, and without those that git ignores."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {path for path in listed.splitlines() if (ROOT / path).is_file()}


def copied_from_repository(*stages: str) -> list[str]:
    """What the stages, or all of them, copy from the repository."""
    chosen = [STAGES[name] for name in stages] or list(STAGES.values())
    return [source for stage in chosen for copy in stage.copies if copy.origin is None for source in copy.sources]


def files_below(source: str) -> list[str]:
    """Of a file itself, of a directory the files in it."""
    return [path for path in files() if path == source or path.startswith(f"{source}/")]


def unpack(directory: Path, *stages: str) -> Path:
    """The repository's files as the stages have them, at the same paths below the directory."""
    for source in copied_from_repository(*stages):
        for path in files_below(source):
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, directory / path)
    return directory
