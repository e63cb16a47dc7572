"""deploy/Dockerfile, parsed into its arguments and stages."""

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from testkit.checkout import ROOT

DOCKERFILE = ROOT / "deploy" / "Dockerfile"


@dataclass(frozen=True, slots=True)
class Copy:
    """COPY instruction: sources, the stage or image that they come from (None is the repository), and target."""

    sources: list[str]
    origin: str | None
    target: str


@dataclass(slots=True)
class Stage:
    """Build stage: the instructions between one FROM and the next."""

    name: str
    base: str
    copies: list[Copy] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    others: dict[str, str] = field(default_factory=dict)


def parse() -> tuple[dict[str, str], dict[str, Stage]]:
    """Arguments with their defaults, and stages by name, in order. Raises AssertionError for an unknown instruction."""
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
    """Paths of the repository's files, including those not committed yet, without those that git ignores."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {path for path in listed.splitlines() if (ROOT / path).is_file()}


def copied_from_repository(*stages: str) -> list[str]:
    """Paths that these stages copy from the repository; all stages when none is given."""
    chosen = [STAGES[name] for name in stages] or list(STAGES.values())
    return [source for stage in chosen for copy in stage.copies if copy.origin is None for source in copy.sources]


def files_below(source: str) -> list[str]:
    """The file itself, or the files in a directory."""
    return [path for path in files() if path == source or path.startswith(f"{source}/")]


def unpack(directory: Path, *stages: str) -> Path:
    """Copy the files that the stages take from the repository to the same paths below `directory`; returns it."""
    for source in copied_from_repository(*stages):
        for path in files_below(source):
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, directory / path)
    return directory
