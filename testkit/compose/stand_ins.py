"""Stand-ins for the images that deploy/Dockerfile and docker-compose.yml pin, from Debian and this machine's tools.

No image registry is used. A stand-in has the name of the pinned image, and what is built on it runs as on that image.
This machine's settings for package registries are in the stand-ins, so that the project's own Dockerfile needs none.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from testkit.checkout import ROOT
from testkit.compose.composition import services
from testkit.compose.dockerfile import ARGUMENTS
from testkit.debian import debian
from testkit.docker import Engine
from testkit.kafka_broker import libraries

IMAGES = Path(__file__).with_name("images")
GO_TOOLCHAIN = ROOT / "exporters" / "ebpf" / "go-toolchain.txt"
#: Label with a digest of what an image was made from.
LABEL = "made-of"
#: Paths of client settings that are not environment variables.
CERTIFICATES = "/etc/ssl"
NPM_SETTINGS = ("/etc/npmrc", "~/.npmrc")
CARGO_SETTINGS = "~/.cargo/config.toml"
#: Home directory of the user that runs a build.
HOME = Path("/root")


@dataclass(frozen=True, slots=True)
class StandIn:
    """A stand-in image: `directory` below images/ has its Dockerfile; `add` copies files of this machine beside it."""

    directory: str
    names: tuple[str, ...]
    target: str = ""
    debian: str = "bookworm"
    add: Callable[[Path], None] = lambda context: None
    #: Version of what `add` copies.
    version: Callable[[], str] = lambda: ""


def build_stand_ins(engine: Engine, *others: str) -> None:
    """Build the stand-ins for the bases of the service's image, for the watchers, and for the services `others`."""
    for stand_in in (*BASES, *WATCHERS, *(each for name in others for each in OTHERS[name])):
        _build(engine, stand_in, _base(engine, stand_in.debian))


def _base(engine: Engine, release: str) -> str:
    """Name of the image of a bare Debian with this machine's client settings; made once."""
    settings = [f"ENV {name}={value}" for name, value in os.environ.items() if value.startswith(CERTIFICATES)]
    made_of = _digest("\n".join(sorted(settings)))
    name = f"cliffwatch-tests/debian:{release}-{made_of}"
    if not engine.has(name, LABEL, made_of):
        changes = [f"--change={line}" for line in (*settings, f"LABEL {LABEL}={made_of}")]
        with tempfile.TemporaryDirectory() as directory:
            root = debian(release, Path(directory)).base
            with subprocess.Popen(["tar", "--create", "--directory", root, "."], stdout=subprocess.PIPE) as packed:
                engine.run("import", *changes, "-", name, stdin=packed.stdout)
            assert packed.returncode == 0
    return name


def _build(engine: Engine, stand_in: StandIn, base: str) -> None:
    directory = IMAGES / stand_in.directory
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    made_of = _digest(base, stand_in.version(), *(path.read_text(encoding="utf-8") for path in files))
    if all(engine.has(name, LABEL, made_of) for name in stand_in.names):
        return
    with tempfile.TemporaryDirectory() as temporary:
        context = Path(temporary) / "context"
        shutil.copytree(directory, context)
        stand_in.add(context)
        target = [f"--target={stand_in.target}"] if stand_in.target else []
        tags = [f"--tag={name}" for name in stand_in.names]
        settings = [f"--build-arg=DEBIAN={base}", f"--label={LABEL}={made_of}", "--network=host"]
        engine.run("build", *settings, *target, *tags, context)


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:12]


def _copy(context: Path, *paths: Path | str, to: str = "/") -> None:
    """Copy files and directories of this machine into machine/ of the build context, at the same paths or in `to`."""
    place = context / "machine" / to.lstrip("/")
    place.mkdir(parents=True, exist_ok=True)
    parents = ["--parents"] if to == "/" else []
    there = dict.fromkeys(str(path).removeprefix("/") for path in paths if Path(path).exists())
    if there:
        subprocess.run(["cp", "--archive", *parents, *there, place], cwd="/", check=True)


def _node_parts() -> list[Path]:
    """Paths of this machine's Node.js and npm; none for Debian's, whose npm does not contain its libraries."""
    node, npm = shutil.which("node"), shutil.which("npm")
    assert node is not None, "the tests need Node.js: apt-get install npm"
    assert npm is not None, "the tests need npm: apt-get install npm"
    package = Path(npm).resolve().parents[1]
    if not (package / "node_modules").is_dir():
        return []
    return [Path(node), Path(node).resolve(), Path(npm), package]


def _add_node(context: Path) -> None:
    _copy(context, *_node_parts())
    _copy(context, NPM_SETTINGS[0])
    _copy(context, Path(NPM_SETTINGS[1]).expanduser(), to=str(HOME))


@cache
def _rust() -> tuple[str, Path]:
    """Version and directory of the machine's Rust toolchain."""
    said = [
        subprocess.run(["rustc", option, *more], check=True, capture_output=True, text=True).stdout.strip()
        for option, *more in (["-vV"], ["--print", "sysroot"])
    ]
    return said[0], Path(said[1])


def _add_rust(context: Path) -> None:
    _, root = _rust()
    # The directory of a distribution's toolchain is /usr; the image gets that toolchain from packages.
    own = [root / name for name in ("bin", "lib")] if root != Path("/usr") else []
    _copy(context, *own, to="/opt/rust")
    _copy(context, Path(CARGO_SETTINGS).expanduser(), to=str(HOME / ".cargo"))


def _add_kafka(context: Path) -> None:
    shutil.copytree(libraries(), context / "libs")


def _add_go_toolchain(context: Path) -> None:
    shutil.copy2(GO_TOOLCHAIN, context)


def _node_version() -> str:
    return subprocess.run(["node", "--version"], check=True, capture_output=True, text=True).stdout


#: Stand-ins for the images on which deploy/Dockerfile builds the service's image.
BASES = (
    StandIn("python", (ARGUMENTS["PYTHON_IMAGE"],)),
    StandIn("node", (ARGUMENTS["NODE_IMAGE"],), add=_add_node, version=_node_version),
    StandIn("rust", (ARGUMENTS["RUST_IMAGE"],), add=_add_rust, version=lambda: _rust()[0]),
)
#: Debian's Prometheus, under a name with its version, on which the configuration depends.
PROMETHEUS_IMAGE = "prom/prometheus:v2.42.0"
#: Stand-ins for the watchers: Debian's packages, as outside containers; for Grafana only its health check.
WATCHERS = (
    StandIn("watchers", (PROMETHEUS_IMAGE,), target="prometheus"),
    *(StandIn("watchers", (services()[name]["image"],), target=name) for name in ("alertmanager", "node-exporter")),
    StandIn("grafana", (services()["grafana"]["image"],)),
)
#: Stand-ins for the images on which the probe and the gateway are built.
PROGRAMS_IN_GO = (
    StandIn("go", (ARGUMENTS["GO_IMAGE"],), debian="trixie", add=_add_go_toolchain, version=GO_TOOLCHAIN.read_text),
    StandIn("debian", (ARGUMENTS["PROBE_IMAGE"],), debian="trixie"),
)
#: Stand-ins for services of profiles, or for the images that those are built on, by service.
OTHERS = {
    "postgres": (StandIn("postgres", (services()["postgres"]["image"],)),),
    "kafka": (StandIn("kafka", (services()["kafka"]["image"],), add=_add_kafka),),
    "ebpf-exporter": PROGRAMS_IN_GO,
    "gateway": PROGRAMS_IN_GO,
}
