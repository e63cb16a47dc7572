"""Stand-in for Grafana's health check: 200 when it can read all that Grafana would, and write Grafana's directory."""

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


# A signal does not end the first process of a container unless the process handles it.
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
HTTPServer((SETTINGS["GF_SERVER_HTTP_ADDR"], int(SETTINGS["GF_SERVER_HTTP_PORT"])), Health).serve_forever()
