"""Latency breakdown by layer, before and after an onset, with the gap between client and device latency.

Percentiles of different layers cannot be subtracted from each other; means can. So the layers are compared by means per
client operation: its latency from when it was due, its latency from when it began, and the time of its requests in the
block layer and below. One operation may need several requests, which is why a client's mean and a device's mean may
both be right and far apart: a transaction of 2.9 ms on a drive that answers within 1.3 ms waits for 2.3 requests, one
after the other.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from math import log

from cliffwatch.analysis.thresholds import (
    LAYER_DEVICE_SHARE,
    LAYER_NOTICEABLE,
    LAYER_PART,
    LAYER_SLOWER,
    NEGLIGIBLE_PART,
    SERVICE_ROSE,
)
from cliffwatch.base.units import format_latency, format_number, format_share


class Layer(StrEnum):
    """Layer in which time is spent, from the top down."""

    #: From when an operation was due until the engine began it.
    SCHEDULE = "schedule"
    #: In the engine, the file system and the page cache, and for a broker on the network and in the broker.
    ABOVE_BLOCK_LAYER = "above_block_layer"
    #: In the block layer, until the driver receives the request.
    QUEUE = "block_queue"
    #: In the driver and the drive.
    DEVICE = "device"


TITLES: dict[Layer, str] = {
    Layer.SCHEDULE: "waiting until the engine began",
    Layer.ABOVE_BLOCK_LAYER: "above the block layer (engine, file system, page cache, network)",
    Layer.QUEUE: "queueing in the block layer",
    Layer.DEVICE: "the device",
}
#: Title of the device layer where it includes the time in the block layer's queue, which is not known separately.
WITH_QUEUE = "the device, with its queue in the block layer"


@dataclass(frozen=True, slots=True)
class LayerTimes:
    """Mean time of an operation in each layer over a span; None where not measured.

    `client_seconds` is an operation's latency from when it was due, `service_seconds` from when it began. A request
    spends `queue_seconds` in the block layer and `device_seconds` below it; where only the sum is known,
    `queue_seconds` is None and `device_seconds` is the sum. `requests_per_operation` is how many requests the drives
    completed per operation of the client, requests of other processes included. `span` is the measured time in words,
    as in `over 30s before the onset`.
    """

    client_seconds: float | None = None
    service_seconds: float | None = None
    queue_seconds: float | None = None
    device_seconds: float | None = None
    requests_per_operation: float | None = None
    span: str = ""

    @property
    def below_seconds(self) -> float | None:
        """Time of all requests of one operation in the block layer and below."""
        if self.device_seconds is None or self.requests_per_operation is None:
            return None
        return self.requests_per_operation * (self.device_seconds + (self.queue_seconds or 0.0))

    @property
    def gap_seconds(self) -> float | None:
        """Latency from when an operation began, minus the time of its requests; negative when the client did not wait
        for them."""
        service = self.service_seconds if self.service_seconds is not None else self.client_seconds
        return None if service is None or self.below_seconds is None else service - self.below_seconds

    def parts(self) -> dict[Layer, float]:
        """Mean seconds of an operation in each layer that was measured; a negative gap counts as 0."""
        found: dict[Layer, float] = {}
        if self.client_seconds is not None and self.service_seconds is not None:
            found[Layer.SCHEDULE] = max(0.0, self.client_seconds - self.service_seconds)
        if self.gap_seconds is not None:
            found[Layer.ABOVE_BLOCK_LAYER] = max(0.0, self.gap_seconds)
        if self.requests_per_operation is not None:
            if self.queue_seconds is not None:
                found[Layer.QUEUE] = self.requests_per_operation * self.queue_seconds
            if self.device_seconds is not None:
                found[Layer.DEVICE] = self.requests_per_operation * self.device_seconds
        return found


@dataclass(frozen=True, slots=True)
class LayerComparison:
    """Comparison of the layers before and after an onset.

    `grew` is the first layer to slow down: the lowest slower one, since the layers above wait for it; None where
    nothing rose. `share` is its own share of the rise (0…1); the rest is waiting in the layers above. `gap` is a
    sentence on the difference between client and device latency after the onset; empty where it is not known.
    """

    before: LayerTimes
    after: LayerTimes
    grew: Layer | None
    share: float | None
    sentence: str
    gap: str

    @property
    def title(self) -> str:
        """Title of the layer `grew`; empty where nothing rose."""
        if self.grew is None:
            return ""
        return WITH_QUEUE if self.grew is Layer.DEVICE and self.after.queue_seconds is None else TITLES[self.grew]

    @property
    def statement(self) -> str:
        """Clause for verdict and report: the first layer to slow down, with its share; empty where nothing rose."""
        if self.grew is None or self.share is None:
            return ""
        return f"first layer to slow down: {self.title}, with {format_share(round(self.share, 2))} of the rise"


def compare(before: LayerTimes, after: LayerTimes) -> LayerComparison:
    """Compare the layers before and after an onset: which slowed down first, and the gap of client and device
    latency."""
    old, new = before.parts(), after.parts()
    rises = {layer: new[layer] - old[layer] for layer in Layer if layer in old and layer in new}
    rise = sum(max(0.0, each) for each in rises.values())
    gap = describe_gap(after)
    if before.client_seconds is None or after.client_seconds is None or Layer.DEVICE not in rises or rise <= 0:
        return LayerComparison(before, after, None, None, "", gap)
    if after.client_seconds - before.client_seconds <= before.client_seconds * NEGLIGIBLE_PART:
        return LayerComparison(before, after, None, None, "", gap)
    # While a schedule slips, the wait for it keeps growing, which does not show what became slower.
    begun = sum(max(0.0, each) for layer, each in rises.items() if layer is not Layer.SCHEDULE)
    slower = [
        layer
        for layer in rises
        if new[layer] > LAYER_SLOWER * old[layer]
        and rises[layer] >= LAYER_PART * (rise if layer is Layer.SCHEDULE else begun)
        and rises[layer] >= LAYER_NOTICEABLE * before.client_seconds
    ]
    if _device_keeps_pace(before, after) and Layer.DEVICE not in slower:
        slower.append(Layer.DEVICE)
    largest = max(rises, key=lambda layer: rises[layer])
    # From the top down: the last is the lowest.
    grew = slower[-1] if slower else largest
    if grew is Layer.SCHEDULE and _service_ratio(before, after) >= SERVICE_ROSE:
        grew = max((layer for layer in rises if layer is not Layer.SCHEDULE), key=lambda layer: rises[layer])
    share = max(0.0, rises[grew]) / rise
    found = LayerComparison(before, after, grew, round(share, 3), "", gap)
    sentence = (
        f"On average an operation took {format_latency(after.client_seconds)}{_over(after)} instead of "
        f"{format_latency(before.client_seconds)}{_over(before)}. {found.statement[0].upper()}{found.statement[1:]}"
    )
    sentence += "." if grew is largest else f"; the rest is queueing upstream, most of it {TITLES[largest]}."
    return replace(found, sentence=sentence)


def _over(times: LayerTimes) -> str:
    return f" {times.span}" if times.span else ""


def _service_ratio(before: LayerTimes, after: LayerTimes) -> float:
    """Ratio of service times, after / before; of latencies from due time where service times are not known."""
    old, new = before.service_seconds, after.service_seconds
    if not old or new is None:
        old, new = before.client_seconds, after.client_seconds
    return new / old if old and new is not None else 1.0


def _device_keeps_pace(before: LayerTimes, after: LayerTimes) -> bool:
    old, new, ratio = before.device_seconds, after.device_seconds, _service_ratio(before, after)
    if not old or new is None or new <= LAYER_SLOWER * old:
        return False
    return ratio <= 1 or log(new / old) >= LAYER_DEVICE_SHARE * log(ratio)


def _counted(requests: float, together: str) -> str:
    number = format_number(requests)
    return f"1 request, {together}" if number == "1" else f"{number} requests, {together} together"


def describe_gap(times: LayerTimes) -> str:
    """Sentence on the gap between client latency and device latency; empty where either is not known."""
    client, below, gap, requests = times.client_seconds, times.below_seconds, times.gap_seconds, None
    requests = times.requests_per_operation
    if client is None or below is None or gap is None or requests is None or times.device_seconds is None:
        return ""
    request = format_latency(times.device_seconds + (times.queue_seconds or 0.0))
    parts = "queue and device"
    if times.queue_seconds is not None:
        queue, device = format_latency(times.queue_seconds), format_latency(times.device_seconds)
        parts = f"{queue} in its queue, {device} in the device"
    sentences = [
        f"An operation took {format_latency(client)} on average{_over(times)}, a request in the block layer {request} "
        f"({parts}).",
        f"For each operation the drive completed {_counted(requests, format_latency(below))}.",
    ]
    waited = client - (times.service_seconds if times.service_seconds is not None else client)
    if waited > client * NEGLIGIBLE_PART:
        sentences.append(f"{format_latency(waited)} passed before the engine began it.")
    if gap > client * NEGLIGIBLE_PART:
        sentences.append(
            f"The remaining {format_latency(gap)} lie above the block layer: in the engine, the file system, the page "
            "cache or the network."
        )
    elif gap < -client * NEGLIGIBLE_PART:
        sentences.append(
            f"That is {format_latency(-gap)} more than the client waited: some requests ran side by side, or "
            "the client did not wait for them."
        )
    else:
        sentences.append("So the requests, one after the other, account for all of it.")
    return " ".join(sentences)
