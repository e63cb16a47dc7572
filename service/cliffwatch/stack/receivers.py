"""Alertmanager's receivers and routes for notification channels: pure functions."""

from collections.abc import Mapping, Sequence
from typing import Any

from cliffwatch.stack.channels import Channel, ChannelKind, Occasion, mail_of

RUN_FINISHED = "CliffwatchRunFinished"
#: The alert that `cliffwatch notify test` raises; its label `channel` names the one channel that gets it.
TEST_ALERT = "CliffwatchNotificationTest"
#: Alerts that only carry state for other alerts, and that need no action of a person.
_STATE = "CliffwatchRunWarmingUp|CliffwatchWatchdog"
_MATCHERS: dict[Occasion, tuple[str, ...]] = {
    Occasion.CLIFF: ('alertname=~"CliffwatchLatencyCliff|CliffwatchLoadStalled"',),
    Occasion.DEGRADATION: ('layer=~"client|device"',),
    Occasion.TROUBLE: ('layer=~"run|watcher"', f'alertname!~"{_STATE}|{RUN_FINISHED}"'),
    Occasion.FINISHED: (f'alertname="{RUN_FINISHED}"',),
    Occasion.INVALID: (f'alertname="{RUN_FINISHED}"', 'verdict=~"invalid|failed"'),
}
#: Occasion → wider occasion that includes it: a channel with both is notified only by the wider one.
_INCLUDED = {Occasion.CLIFF: Occasion.DEGRADATION, Occasion.INVALID: Occasion.FINISHED}
#: Occasions that are over at once, so that their end is not worth a notification.
_ENDS = frozenset({Occasion.FINISHED, Occasion.INVALID})

#: Least time between two notifications of one group, also of one that fails: a site that is down is not flooded.
_GROUP_INTERVAL = "1m"

_ENDED = "{{ .CommonLabels.verdict }}: run {{ .CommonLabels.run_id }} has ended"
_SUBJECT = '{{ if eq .Status "resolved" }}Over: {{ end }}{{ .CommonAnnotations.summary }}'
_RUN = "{{ with .CommonLabels.run_id }} ({{ . }}){{ end }}"
_ONCE = "{{ if .CommonLabels.verdict }}" + _ENDED + "{{ else }}{{ .CommonAnnotations.summary }}{{ end }}"
#: Colours of messages in Slack: of alerts by severity, of runs by verdict, and of a test as of a pass.
_ALERT_COLOUR = (
    '{{ if eq .Status "resolved" }}good{{ else if eq .CommonLabels.severity "critical" }}danger'
    "{{ else }}warning{{ end }}"
)
_END_COLOUR = (
    '{{ if eq .CommonLabels.verdict "" "pass" }}good{{ else if eq .CommonLabels.verdict "degraded" "failed" }}danger'
    "{{ else }}warning{{ end }}"
)
_SAID = '{{ range .Alerts }}{{ .Annotations.description }}{{ "\\n" }}{{ end }}'


def routes_of(channels: Mapping[Channel, str]) -> list[dict[str, Any]]:
    """Alertmanager routes of channels, to be put before all others; each has `continue`, so later ones match too."""
    routes = []
    for channel in channels:
        for occasion in channel.occasions:
            if _INCLUDED.get(occasion) in channel.occasions:
                continue
            receiver = _name_of_ends(channel) if occasion in _ENDS else channel.name
            routes.append(_route(receiver, _MATCHERS[occasion]))
        test = (f'alertname="{TEST_ALERT}"', f'channel="{channel.name}"')
        routes.append({**_route(receiver_of_tests(channel), test), "group_wait": "0s"})
    return routes


def _route(receiver: str, matchers: Sequence[str]) -> dict[str, Any]:
    return {"receiver": receiver, "matchers": list(matchers), "group_interval": _GROUP_INTERVAL, "continue": True}


def receivers_of(channels: Mapping[Channel, str], service_url: str) -> list[dict[str, Any]]:
    """Two receivers for each channel: one for alerts, one for what comes once, which is runs that ended and tests.
    `channels` has their secrets.

    `service_url` is where people reach the service's pages.
    """
    receivers = []
    for channel, secret in channels.items():
        for name, subject, links, colour, send_resolved in (
            (channel.name, _SUBJECT + _RUN, _alert_links(service_url), _ALERT_COLOUR, True),
            (_name_of_ends(channel), _ONCE, _end_links(service_url), _END_COLOUR, False),
        ):
            section, fields = _integration(channel.kind, secret, subject, _SAID + links, colour, service_url)
            receivers.append({"name": name, section: [{**fields, "send_resolved": send_resolved}]})
    return receivers


def receiver_of_tests(channel: Channel) -> str:
    """Name of the receiver of a channel's test notifications."""
    return _name_of_ends(channel)


def _name_of_ends(channel: Channel) -> str:
    return f"{channel.name}/ends"


def _alert_links(service_url: str) -> str:
    run = f"{{{{ with .CommonLabels.run_id }}}}{service_url}/runs/{{{{ . }}}}{{{{ end }}}}"
    of_run = "{{ with .CommonLabels.run_id }}?run_id={{ . }}{{ end }}"
    path = "{{ .CommonAnnotations.runbook_url }}"
    runbook = f"{{{{ if .CommonAnnotations.runbook_url }}}}what to do: {service_url}{path}{of_run}{{{{ end }}}}"
    return f'{run}{{{{ "\\n" }}}}{runbook}'


def _end_links(service_url: str) -> str:
    run = f"{service_url}/runs/{{{{ . }}}}"
    links = f'report: {run}/report{{{{ "\\n" }}}}picture: {run}/report.png'
    return f"{{{{ with .CommonLabels.run_id }}}}{links}{{{{ end }}}}"


def _integration(
    kind: ChannelKind, secret: str, subject: str, text: str, colour: str, service_url: str
) -> tuple[str, dict[str, Any]]:
    """Name of a receiver's section, such as `slack_configs`, and the section's fields."""
    if kind is ChannelKind.SLACK:
        page = f"{service_url}{{{{ with .CommonLabels.run_id }}}}/runs/{{{{ . }}}}{{{{ end }}}}"
        shown = {"color": colour, "username": "Cliffwatch", "fallback": subject}
        return "slack_configs", {"api_url": secret, "title": subject, "title_link": page, "text": text, **shown}
    if kind is ChannelKind.EMAIL:
        # Without HTML: every mail program shows plain text as it is.
        return "email_configs", {**mail_of(secret), "headers": {"Subject": subject}, "text": text, "html": ""}
    if kind is ChannelKind.PAGERDUTY:
        severity = "{{ with .CommonLabels.severity }}{{ . }}{{ else }}warning{{ end }}"
        said = {"description": subject, "details": {"text": text}, "client": "Cliffwatch", "client_url": service_url}
        return "pagerduty_configs", {"routing_key": secret, "severity": severity, **said}
    return "webhook_configs", {"url": secret}
