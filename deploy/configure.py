"""python -m deploy.configure: give the watchers' containers their tokens and configurations, as `cliffwatch up` does.

These files cannot simply be committed: the service's database makes the tokens in them. So the functions of
`cliffwatch up` write them, once the service is ready and before a watcher starts. For watchers whose images have no
rules and dashboards, these are copied from this image: file modes may keep the watchers from reading a checkout's.
"""

import argparse
import os
import re
import shutil
import sys
from pathlib import Path

from cliffwatch.base.clock import SystemClock
from cliffwatch.base.durable import write_durably
from cliffwatch.base.errors import Problem
from cliffwatch.base.resources import ALERTS_DIRECTORY
from cliffwatch.model.settings import Settings, read_settings
from cliffwatch.stack.channels import read_channels, with_secrets
from cliffwatch.stack.components import ALERTMANAGER, EXPORTERS, PROMETHEUS
from cliffwatch.stack.configuration import (
    WEBHOOK_PATH,
    alertmanager_configuration,
    prometheus_configuration,
)
from cliffwatch.stack.launch import SCRAPE_INTERVAL_SECONDS, make_tokens, token_path

#: Compose profile that starts an exporter's container, by the exporter's job; other exporters always start.
PROFILES = {"ebpf": "ebpf", "drive": "nvme"}
#: Other directories that the watchers read, by their paths in the repository.
PUBLISHED = ("alerts", "dashboards/json", "dashboards/provisioning")


def configurations(settings: Settings, profiles: list[str], published_at: Path | None) -> dict[Path, str]:
    """Text of each watcher's configuration, by its path, with the exporters that the profiles start.

    `published_at` is the directory where a watcher finds what `publish` copied, None if it reads the originals.
    """
    service = f"{settings.listen_host}:{settings.listen_port}"
    channels, faults = with_secrets(read_channels(settings))
    for fault in faults:
        print(fault, file=sys.stderr)
    exporters = {
        job: exporter.address(settings)
        for job, exporter in EXPORTERS.items()
        if job not in PROFILES or PROFILES[job] in profiles
    }
    return {
        PROMETHEUS.directory(settings) / "prometheus.yaml": prometheus_configuration(
            service_address=service,
            prometheus_address=PROMETHEUS.address(settings),
            token_file=token_path(settings, PROMETHEUS),
            alertmanager_address=ALERTMANAGER.address(settings),
            exporters=exporters,
            scrape_interval_seconds=SCRAPE_INTERVAL_SECONDS,
            alerts_seen_at=published_at and published_at / "alerts",
            major_version=major_version(os.environ.get("CLIFFWATCH_PROMETHEUS_IMAGE", "")),
        ),
        ALERTMANAGER.directory(settings) / "alertmanager.yaml": alertmanager_configuration(
            f"http://{service}{WEBHOOK_PATH}",
            token_path(settings, ALERTMANAGER),
            channels=channels,
            public_url=settings.public_url,
        ),
    }


def major_version(image: str) -> int:
    """Major version of an image's program, by its tag; 2 if unknown, since every version reads version 2's format."""
    found = re.search(r":v?(\d+)\.", image)
    return 2 if found is None else int(found[1])


def publish(directory: Path) -> None:
    """Copy the directories PUBLISHED into `directory`, replacing copies from an earlier image."""
    for name in PUBLISHED:
        target = directory / name
        if target.exists():
            shutil.rmtree(target)
        shutil.copytree(ALERTS_DIRECTORY.parent / name, target)


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy.configure", description=__doc__)
    parser.add_argument("--publish", type=Path, metavar="DIRECTORY", help="copy rules and dashboards there")
    parser.add_argument("--published-at", type=Path, metavar="DIRECTORY", help="where the watchers find that directory")
    arguments = parser.parse_args()
    try:
        settings = read_settings()
    except Problem as problem:
        print(f"configuration: {problem}", file=sys.stderr)
        return 2
    profiles = [name.strip() for name in os.environ.get("COMPOSE_PROFILES", "").split(",")]
    make_tokens(settings, SystemClock())
    for path, content in configurations(settings, profiles, arguments.published_at).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, content)
        print(f"wrote {path}")
    if arguments.publish:
        publish(arguments.publish)
        print(f"copied {', '.join(PUBLISHED)} to {arguments.publish}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
