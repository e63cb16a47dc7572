"""The check of a Kafka load."""

import json
import subprocess
import tempfile
from typing import Any

from testkit.kafka_load import configuration, program


def check(bootstrap: str, **changes: Any) -> dict[str, Any]:
    """What `--check` prints of this load."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(configuration(bootstrap, **changes), file)
        file.flush()
        command = [program(), "kafka", "--config", file.name, "--check"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
