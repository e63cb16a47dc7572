"""python3 setup/notices.py DIRECTORY TARGET: THIRD-PARTY-LICENSES.txt and cliffwatch.cdx.json of what a wheel carries.
python3 setup/notices.py --of PROGRAM... DIRECTORY...: to stdout, the licences of what is linked into programs of Go, of
which go has the sources, and those that lie in directories.

What is linked into the Rust programs for that target, by Cargo's own resolution, and the libraries of the pages. The
Python packages that a wheel needs are installed beside it, with licences of their own. The SBOM is CycloneDX 1.6
(https://cyclonedx.org/docs/1.6/json/).
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ("cliffwatch-drive", "cliffwatch-load")
LIBRARIES = ("htmx.org", "uplot")
_LICENCE_FILES = ("licen", "copying", "notice", "unlicense")
_RULE = "=" * 79


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """Third-party work: `licence` is an SPDX expression, `digest` its archive's SHA-256 where that is known."""

    name: str
    version: str
    package_url: str
    licence: str
    directory: Path
    digest: str | None

    def licences(self) -> list[str]:
        """The texts that it comes with, also of what it carries itself, such as a C library."""
        files = sorted(path for path in self.directory.rglob("*") if path.is_file() and self._is_licence(path))
        return [path.read_text(encoding="utf-8", errors="replace").strip() for path in files]

    def _is_licence(self, path: Path) -> bool:
        """By its name, or that of the directory that it is kept in."""
        names = path.relative_to(self.directory).parts
        return any(name.lower().startswith(_LICENCE_FILES) for name in names)


def crates(target: str) -> Iterator[Part]:
    """Raises CalledProcessError where Cargo cannot say it."""
    command = ("cargo", "metadata", "--format-version=1", "--locked", f"--filter-platform={target}")
    answer = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    metadata = json.loads(answer)
    packages = {package["id"]: package for package in metadata["packages"]}
    digests = {
        (package["name"], package["version"]): package.get("checksum")
        for package in tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    }
    for identity in _linked(metadata, packages):
        package = packages[identity]
        if package["source"] is None:
            continue
        name, version = package["name"], package["version"]
        yield Part(
            name=name,
            version=version,
            package_url=f"pkg:cargo/{name}@{version}",
            licence=package["license"].replace("/", " OR "),
            directory=Path(package["manifest_path"]).parent,
            digest=digests[name, version],
        )


def _linked(metadata: dict[str, Any], packages: dict[str, dict[str, Any]]) -> set[str]:
    """What a program is linked with: not what only builds or tests it, and no macros, which run in the compiler."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [identity for identity in metadata["workspace_members"] if packages[identity]["name"] in PROGRAMS]
    found: set[str] = set()
    while waiting:
        identity = waiting.pop()
        if identity in found or any("proc-macro" in target["kind"] for target in packages[identity]["targets"]):
            continue
        found.add(identity)
        for needed in nodes[identity]["deps"]:
            if any(kind["kind"] is None for kind in needed["dep_kinds"]):
                waiting.append(needed["pkg"])
    return found


def libraries() -> Iterator[Part]:
    """Raises OSError where `make assets` did not fetch them."""
    for name in LIBRARIES:
        directory = ROOT / "service" / "cliffwatch" / "web" / "assets" / "node_modules" / name
        package = json.loads((directory / "package.json").read_text(encoding="utf-8"))
        version = package["version"]
        yield Part(name, version, f"pkg:npm/{name}@{version}", package["license"], directory, digest=None)


def go_modules(program: Path) -> Iterator[Part]:
    """Go modules that a program is linked with. Raises CalledProcessError where go cannot say it or has no sources."""

    def go(*words: str) -> str:
        return subprocess.run(("go", *words), check=True, capture_output=True, text=True).stdout

    cache = Path(go("env", "GOMODCACHE").strip())
    for line in go("version", "-m", str(program)).splitlines():
        kind, _, rest = line.strip().partition("\t")
        if kind in ("dep", "mod") and not rest.startswith("cliffwatch/"):
            name, version = rest.split("\t")[:2]
            # An upper-case letter is written as "!" and its lower case: https://go.dev/ref/mod#module-cache
            place = re.sub("[A-Z]", lambda letter: f"!{letter[0].lower()}", f"{name}@{version}")
            yield Part(name, version, f"pkg:golang/{name}@{version}", "as below", cache / place, digest=None)


def _of_programs(paths: list[Path]) -> str:
    parts = {part for path in paths if path.is_file() for part in go_modules(path)}
    parts |= {Part(path.name, "", "", "as below", path, digest=None) for path in paths if path.is_dir()}
    return licences(sorted(parts))


def licences(parts: list[Part]) -> str:
    """Each text once, under the names of all that come with it. Raises ValueError for a part that comes with none."""
    by_text: dict[str, list[Part]] = {}
    for part in parts:
        texts = part.licences()
        if not texts:
            raise ValueError(f"{part.name} {part.version} comes without the text of its licence")
        for text in texts:
            by_text.setdefault(text, []).append(part)
    sections = (
        "\n".join([_RULE, *(f"{part.name} {part.version}: {part.licence}" for part in dict.fromkeys(named)), "", text])
        for text, named in by_text.items()
    )
    return "\n\n".join(["What Cliffwatch carries of others, and on what terms.", *sections]) + "\n"


def bill_of_materials(parts: list[Part], version: str, made_at: datetime) -> str:
    """The same parts in CycloneDX."""
    components = []
    for part in parts:
        component: dict[str, Any] = {
            "type": "library",
            "bom-ref": part.package_url,
            "name": part.name,
            "version": part.version,
            "purl": part.package_url,
            "licenses": [{"expression": part.licence}],
        }
        if part.digest:
            component["hashes"] = [{"alg": "SHA-256", "content": part.digest}]
        components.append(component)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": made_at.isoformat(),
            "component": {"type": "application", "bom-ref": "cliffwatch", "name": "cliffwatch", "version": version},
        },
        "components": components,
        "dependencies": [{"ref": "cliffwatch", "dependsOn": [part.package_url for part in parts]}],
    }
    return json.dumps(document, indent=1) + "\n"


def main() -> None:
    if sys.argv[1] == "--of":
        sys.stdout.write(_of_programs([Path(word) for word in sys.argv[2:]]))
        return
    directory, target = Path(sys.argv[1]), sys.argv[2]
    version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    made_at = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    parts = sorted([*crates(target), *libraries()])
    (directory / "THIRD-PARTY-LICENSES.txt").write_text(licences(parts), encoding="utf-8")
    (directory / "cliffwatch.cdx.json").write_text(bill_of_materials(parts, version, made_at), encoding="utf-8")


if __name__ == "__main__":
    main()
