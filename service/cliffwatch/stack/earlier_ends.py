"""Keep a channel that was just added from news of runs that ended before.

`CliffwatchRunFinished` fires for a quarter of an hour, and Alertmanager sends what fires to each new route. Silences
keep it from that; other channels have had their notifications by then.
"""

from datetime import UTC, datetime, timedelta

import httpx

from cliffwatch.base.clock import Clock
from cliffwatch.base.http_client import http_client
from cliffwatch.model.settings import Settings
from cliffwatch.stack.components import ALERTMANAGER
from cliffwatch.stack.processes import ANSWER_TIMEOUT_SECONDS
from cliffwatch.stack.receivers import RUN_FINISHED

#: For how long the alert may still be repeated: the quarter of an hour that it fires, and what Prometheus adds to it.
_LASTS = timedelta(minutes=20)
#: The alert of a run that ended this recently may not have reached other channels yet.
_UNDER_WAY = timedelta(seconds=30)


def silence_earlier_ends(settings: Settings, clock: Clock) -> int:
    """Silence the alerts of runs that ended before; returns their number, 0 where Alertmanager does not answer."""
    now = datetime.fromtimestamp(clock.wall(), UTC)
    try:
        with http_client(ANSWER_TIMEOUT_SECONDS, f"http://{ALERTMANAGER.address(settings)}/api/v2") as client:
            query = {"filter": f'alertname="{RUN_FINISHED}"', "silenced": "false"}
            found = client.get("/alerts", params=query).raise_for_status().json()
            earlier = [
                alert["labels"]["run_id"]
                for alert in found
                if datetime.fromisoformat(alert["startsAt"]) < now - _UNDER_WAY and "run_id" in alert["labels"]
            ]
            for run_id in earlier:
                client.post("/silences", json=_silence(run_id, now)).raise_for_status()
    except httpx.HTTPError:
        return 0
    return len(earlier)


def _silence(run_id: str, now: datetime) -> dict[str, object]:
    labels = {"alertname": RUN_FINISHED, "run_id": run_id}
    return {
        "matchers": [{"name": name, "value": value, "isRegex": False} for name, value in labels.items()],
        "startsAt": now.isoformat(),
        "endsAt": (now + _LASTS).isoformat(),
        "createdBy": "cliffwatch notify add",
        "comment": "The run ended before the channel was added.",
    }
