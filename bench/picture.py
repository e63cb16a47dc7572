"""`python -m bench.picture RUN_DIRECTORY`: docs/images/report.png, the first screen of that run's report."""

import subprocess
import sys
import tempfile
from pathlib import Path

from cliffwatch.journal import files

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "report.png"
#: Chromium otherwise tries to reach its maker.
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)


def main(run_directory: Path) -> None:
    PICTURE.parent.mkdir(exist_ok=True)
    page = (run_directory / files.REPORT_HTML).resolve().as_uri()
    with tempfile.TemporaryDirectory(prefix="cliffwatch-picture-") as browser:
        subprocess.run(
            [
                "chromium",
                *QUIET,
                f"--user-data-dir={browser}",
                f"--screenshot={PICTURE}",
                "--window-size=1280,1400",
                "--virtual-time-budget=5000",
                page,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    print(PICTURE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
