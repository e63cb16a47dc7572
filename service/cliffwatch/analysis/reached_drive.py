"""Proof that the load reached the drive: the engine's count, the drives' counters, and the engine's share of them.

Three figures say where bytes went, and none is enough alone:

- *engine*: what the engine moved by its own count.
- *charged*: what the kernel charges to the engine's process (/proc/PID/io: its threads, those of io_uring included, and
  children that it has waited for). Direct I/O and every read are charged when they are handed to the block layer, so
  they are the engine's share of the drive. A buffered write is charged when it makes a clean page dirty: written again
  before it goes out, a page is charged once, and a page that is dropped (its file deleted or cut) is given back as
  cancelled. What is charged and not cancelled is therefore what reaches the drive once dirty pages are flushed, which
  happens before a run is judged. It is charged once, at the top of whatever device-mapper, RAID or loop stands below.
- *device*: what the kernel counted on the drives, of all processes, with what the file system adds for itself (journal
  and metadata, which its own threads write) and what redundancy multiplies.

So a load reached the drive when both the device and the engine's own share have 9/10 of it. The device alone would pass
on others' bytes; the share alone would pass where the drive below is not the one that was watched. File systems that
move data in threads of their own (`UNCHARGED`) charge no process that can be named: there, only the device is compared.
"""

from dataclasses import dataclass

from cliffwatch.base.units import format_share, format_size

#: Below this part of the engine's bytes, the device did not do the engine's work. The rest of the way to 1 is left to
#: what a file system rewrites in place and to the write that is on its way when a window ends.
DEVICE_BYTES_MINIMUM = 0.9
#: Below this part of the drives' traffic, most of it was not the engine's.
OWN_SHARE_MINIMUM = 0.5
#: Types of file systems whose I/O is charged to threads or processes of their own.
UNCHARGED = frozenset({"zfs", "fuse", "fuseblk"})


@dataclass(frozen=True, slots=True)
class Share:
    """Bytes of one direction by engine, process and device, over the windows in which the process's share is known."""

    engine_bytes: int
    charged_bytes: int
    device_bytes: int


@dataclass(frozen=True, slots=True)
class Direction:
    """Bytes of a whole run; `device_bytes`, flushed after the load included, are None where no drive was watched."""

    verb: str
    moved: str
    engine_bytes: int
    device_bytes: int | None
    share: Share | None


def not_reached(traffic: Direction) -> str | None:
    """Why the load cannot have reached the drive; None where it did, or where nothing is known."""
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
    """Whether what the kernel charges to the engine says so by itself, whatever the drive's counters are."""
    return share is not None and share.charged_bytes >= share.engine_bytes * DEVICE_BYTES_MINIMUM


def not_watched(directions: list[Direction]) -> str | None:
    """Sentence: nothing proves that the load reached the drive. None where something does, or there was no load."""
    moved = [
        f"{format_size(each.engine_bytes)} {'written' if each.verb == 'wrote' else 'read'}"
        for each in directions
        if each.engine_bytes > 0 and each.device_bytes is None and not reaches_a_device(each.share)
    ]
    if not moved:
        return None
    return f"There is no evidence that the I/O reached the device ({', '.join(moved)}): its counters were not recorded."


def not_counted(directions: list[Direction]) -> str | None:
    """Sentence: the drive was not measured, and only the engine's own share proves that the load reached it."""
    if not any(each.engine_bytes > 0 and each.device_bytes is None for each in directions):
        return None
    return (
        "The drive's own latency, traffic and queue were not measured: its counters were not recorded, or never moved. "
        "That the load reached a device is known by what the kernel charges to the engine."
    )


def mostly_others(shares: list[Share], drives: int) -> str | None:
    """Sentence: most of the drives' traffic, in both directions together, was not the engine's.

    With several drives, redundancy may write every byte to each of them, and that much is taken for the engine's.
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
