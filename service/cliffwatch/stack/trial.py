"""Test notification: send it through Alertmanager to one channel, and check whether it was delivered."""

import re
from pathlib import Path

import httpx

from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.http_client import http_client
from cliffwatch.model.settings import Settings
from cliffwatch.stack.channels import Channel
from cliffwatch.stack.components import ALERTMANAGER
from cliffwatch.stack.processes import LOG_FILE
from cliffwatch.stack.receivers import TEST_ALERT, receiver_of_tests

#: How long to wait for the delivery: Alertmanager tries again after 1, 2 and 4 s, and later success is unlikely.
PATIENCE_SECONDS = 15.0
_POLL_SECONDS = 0.2
_REQUEST_SECONDS = 5.0
#: Reason of a failed attempt, in a line of Alertmanager's log (logfmt).
_REASON = re.compile(r'\berr="((?:[^"\\]|\\.)*)"')


def send_trial(settings: Settings, channel: Channel, clock: Clock) -> None:
    """Send a notification to a channel and wait until it is delivered.

    Raises Problem(not_ready) with the reason if it is not delivered.
    """
    url = f"http://{ALERTMANAGER.address(settings)}"
    log = ALERTMANAGER.directory(settings) / LOG_FILE
    labels = {"alertname": TEST_ALERT, "channel": channel.name, "severity": "info", "sent_at": f"{clock.wall():.3f}"}
    annotations = {
        "summary": "Cliffwatch can reach this channel.",
        "description": f"`cliffwatch notify test {channel.name}` sent this. Nothing is wrong.",
    }
    begun, seen_bytes = clock.monotonic(), _size(log)
    try:
        with http_client(_REQUEST_SECONDS, url) as client:
            before, was_delivered = _delivered(client, channel), False
            alert = {"labels": labels, "annotations": annotations}
            client.post("/api/v2/alerts", json=[alert]).raise_for_status()
            while clock.monotonic() - begun < PATIENCE_SECONDS:
                if (reason := _reason_in(log, seen_bytes, channel)) is not None:
                    raise _undelivered(channel, reason)
                is_delivered = _delivered(client, channel) > before
                if is_delivered and was_delivered:
                    return
                # Alertmanager counts a request first and its failure after it, and may be asked between the two.
                was_delivered = is_delivered
                clock.sleep(_POLL_SECONDS)
    except httpx.HTTPError as error:
        remedy = "`cliffwatch up` starts it"
        raise Problem(Code.NOT_READY, f"Alertmanager does not answer at {url}: {error}; {remedy}") from error
    more = "" if log.exists() else "; Alertmanager's log says why (`docker compose logs alertmanager`)"
    raise _undelivered(channel, f"it was not delivered within {PATIENCE_SECONDS:g} s{more}")


def _undelivered(channel: Channel, reason: str) -> Problem:
    return Problem(Code.NOT_READY, f"{channel.name} was not reached: {reason}; correct what {channel.url_file} holds")


def _delivered(client: httpx.Client, channel: Channel) -> float:
    """Number of requests of the channel's kind that succeeded since Alertmanager started, by its own metrics."""
    text = client.get("/metrics").text
    counts = dict.fromkeys(("", "_failed"), 0.0)
    for which in counts:
        name = f"alertmanager_notification_requests{which}_total"
        for count in re.findall(rf'^{name}\{{[^}}]*integration="{channel.kind.value}"[^}}]*\}} (\S+)$', text, re.M):
            counts[which] += float(count)
    return counts[""] - counts["_failed"]


def _reason_in(log: Path, from_bytes: int, channel: Channel) -> str | None:
    """Reason why a notification to the channel failed, from Alertmanager's log after `from_bytes`; None if none failed.

    Addresses in the reason are replaced, since they are secret.
    """
    try:
        with log.open("rb") as file:
            file.seek(from_bytes)
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return None
    receiver = receiver_of_tests(channel)
    for line in lines:
        # The line of a repeated attempt names the receiver; after the last attempt the reason begins with it.
        is_about = f"receiver={receiver} " in line or f'err="{receiver}/{channel.kind.value}[' in line
        if is_about and (found := _REASON.search(line)):
            return re.sub(r"(?:https?|smtps?)://[^\s\"]+", "<address>", found[1].replace('\\"', '"'))
    return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
