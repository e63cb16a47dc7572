"""Proof that the load reached the drive: the engine's count, the drives' counters, and the engine's share of them.

Three counts of bytes show where data went, and none is enough alone:

- *engine*: bytes that the engine moved, by its own count.
- *charged*: bytes that the kernel charges to the engine's process (/proc/PID/io: its threads, those of io_uring
  included, and children that it has waited for). Direct I/O and every read are charged when they enter the block layer,
  so they are the engine's share of the drive. A buffered write is charged when it makes a clean page dirty: a page that
  is written again before it is flushed is charged once, and a page that is dropped (its file deleted or truncated) is
  counted as cancelled. Charged minus cancelled bytes therefore reach the drive once dirty pages are flushed, which
  happens before a run is judged. They are charged once, above any device-mapper, RAID or loop device.
- *device*: bytes that the kernel counted on the drives, of all processes, with those that the file system adds for
  itself (journal and metadata, which its own threads write) and with the copies that redundancy adds.

So a load reached the drive when both the device's bytes and the charged bytes are at least 9/10 of the engine's. The
device's bytes alone may be those of other processes; the charged bytes alone may have reached a drive that was not
watched. File systems that move data in threads of their own (`UNCHARGED`) charge no process that can be named: there,
only the device's bytes are compared.
"""

from dataclasses import dataclass

from cliffwatch.base.units import format_share, format_size

#: Below this part of the engine's bytes, the load did not reach the device. The margin up to 1 is for data that a file
#: system rewrites in place, and for the write that is in flight when a window ends.
DEVICE_BYTES_MINIMUM = 0.9
#: Below this part of the drives' traffic, most of it was not the engine's.
OWN_SHARE_MINIMUM = 0.5
#: Types of file systems whose I/O is charged to threads or processes of their own.
UNCHARGED = frozenset({"zfs", "fuse", "fuseblk"})


@dataclass(frozen=True, slots=True)
class Share:
    """Bytes written or read by the counts of engine, process and device, over the windows with a process count."""

    engine_bytes: int
    charged_bytes: int
    device_bytes: int


@dataclass(frozen=True, slots=True)
class Direction:
    """Bytes that a whole run wrote, or read; `device_bytes` include those flushed after the load, and are None where no
    drive was watched."""

    verb: str
    moved: str
    engine_bytes: int
    device_bytes: int | None
    share: Share | None


def not_reached(traffic: Direction) -> str | None:
    """Sentence on why the load did not reach the drive; None where it did, or where its bytes are not known."""
    if traffic.engine_bytes == 0 or traffic.device_bytes is None:
        return None
    needed = f"less than the {format_share(DEVICE_BYTES_MINIMUM)} that a measurement of the device needs"
    if traffic.device_bytes < traffic.engine_bytes * DEVICE_BYTES_MINIMUM:
        return (
            f"The run was served by the page cache: the engine {traffic.verb} {format_size(traffic.engine_bytes)}, but "
            f"only {format_size(traffic.device_bytes)} ({_percent(traffic.device_bytes, traffic.engine_bytes)}) "
            f"{traffic.moved} the device, {needed}."
        )
    share = traffic.share
    if share is None or reaches_a_device(share):
        return None
    return (
        f"The run was served by the page cache: the engine {traffic.verb} {format_size(share.engine_bytes)}, but only "
        f"{format_size(share.charged_bytes)} ({_percent(share.charged_bytes, share.engine_bytes)}) of its own "
        f"{traffic.moved} a device, {needed}. Most of the {format_size(share.device_bytes)} on the device were others'."
    )


def reaches_a_device(share: Share | None) -> bool:
    """Whether the bytes charged to the engine prove by themselves that the load reached a device, without drive
    counters."""
    return share is not None and share.charged_bytes >= share.engine_bytes * DEVICE_BYTES_MINIMUM


def not_watched(directions: list[Direction]) -> str | None:
    """Sentence on a load without proof that it reached the drive; None where there is proof, or no load."""
    moved = [
        f"{format_size(each.engine_bytes)} {'written' if each.verb == 'wrote' else 'read'}"
        for each in directions
        if each.engine_bytes > 0 and each.device_bytes is None and not reaches_a_device(each.share)
    ]
    if not moved:
        return None
    return f"There is no evidence that the I/O reached the device ({', '.join(moved)}): its counters were not recorded."


def not_counted(directions: list[Direction]) -> str | None:
    """Sentence on a drive without counters, where only the charged bytes prove that it was reached; else None."""
    if not any(each.engine_bytes > 0 and each.device_bytes is None for each in directions):
        return None
    return (
        "The drive's own latency, traffic and queue were not measured: its counters were not recorded, or never moved. "
        "That the load reached a device is known by what the kernel charges to the engine."
    )


def mostly_others(shares: list[Share], drives: int) -> str | None:
    """Sentence on a run in which most of the drives' traffic, reads and writes together, was not the engine's; else
    None.

    With several drives, redundancy may write every byte to each of them, so the engine's bytes count once per drive.
    """
    charged = sum(share.charged_bytes for share in shares)
    device = sum(share.device_bytes for share in shares)
    if device == 0 or charged * max(1, drives) >= device * OWN_SHARE_MINIMUM:
        return None
    return (
        f"Most of the drive's traffic was not the engine's: of {format_size(device)} written and read during the load, "
        f"{format_size(charged)} ({_percent(charged, device)}) were. The rest is other processes', or what the file "
        "system writes for itself, and the engine shared the drive with it."
    )


def _percent(part: int, whole: int) -> str:
    return f"{int(part / whole * 10_000 + 1e-6) / 100:.2f} %"
