"""A native histogram on a port, as an exporter has it: in Prometheus' protobuf format, which the Python client lacks.

The messages are those of https://github.com/prometheus/client_model/blob/master/io/prometheus/client/metrics.proto
"""

import http.server
import math
import struct
import threading
from collections import Counter
from types import TracebackType

from testkit.ports import free_port

NAME = "native_request_latency_seconds"
_HISTOGRAM = 4
_CONTENT_TYPE = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"


class NativeExporter:
    """Counts latencies in buckets that grow by a factor of 2^(2^-schema); the schema may be lowered meanwhile."""

    def __init__(self, schema: int) -> None:
        self.port = free_port()
        self.schema = schema
        self._latencies: list[float] = []
        exporter = self

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = exporter.exposition()
                self.send_response(200)
                self.send_header("Content-Type", _CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Answer)
        self._thread = threading.Thread(target=self._server.serve_forever)

    def __enter__(self) -> "NativeExporter":
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def observe(self, latency_seconds: float, times: int = 1) -> None:
        self._latencies += [latency_seconds] * times

    def restart(self) -> None:
        """As a process does that begins anew."""
        self._latencies = []

    def exposition(self) -> bytes:
        latencies = list(self._latencies)
        base = 2.0**-self.schema
        places = Counter(math.ceil(math.log2(latency) / base) for latency in latencies)
        spans, deltas, before, next_place = b"", b"", 0, 0
        for place, count in sorted(places.items()):
            spans += _message(12, _signed(1, place - next_place) + _whole(2, 1))
            deltas += _signed(13, count - before)
            before, next_place = count, place + 1
        histogram = _whole(1, len(latencies)) + _double(2, sum(latencies)) + _signed(5, self.schema)
        histogram += _double(6, 2.0**-128) + _whole(7, 0) + spans + deltas
        label = _message(1, _text(1, "request") + _text(2, "produce"))
        family = _text(1, NAME) + _text(2, "Latency.") + _whole(3, _HISTOGRAM)
        family += _message(4, label + _message(7, histogram))
        return _varint(len(family)) + family


def _varint(value: int) -> bytes:
    text = bytearray()
    while value > 0x7F:
        text.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*text, value])


def _whole(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _signed(number: int, value: int) -> bytes:
    return _whole(number, value * 2 if value >= 0 else -value * 2 - 1)


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _text(number: int, text: str) -> bytes:
    return _message(number, text.encode())
