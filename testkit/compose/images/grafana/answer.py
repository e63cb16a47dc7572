"""Is well where everything is readable that Grafana would read, and its own directory can be written."""

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

SETTINGS = os.environ
HOME = Path(SETTINGS["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
PROVISIONING = Path(SETTINGS["GF_PATHS_PROVISIONING"])


class Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # the library's name
        json.loads(HOME.read_text(encoding="utf-8"))
        read = [path.read_text(encoding="utf-8") for path in PROVISIONING.rglob("*.yaml")]
        Path("/var/lib/grafana/grafana.db").touch()
        self.send_response(200 if read and self.path == "/api/health" else 404)
        self.end_headers()


# The first process of a container is ended by no signal that it does not handle.
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
HTTPServer((SETTINGS["GF_SERVER_HTTP_ADDR"], int(SETTINGS["GF_SERVER_HTTP_PORT"])), Health).serve_forever()
