"""Thresholds of causes: they decide of which cause a finding is. docs/causes.md documents the same."""

#: A cause is named from this sum of weights on: one strong piece of evidence with nothing against it.
NAMED_FROM = 3.0
#: The drive's latency counts as risen from this factor on, and as unchanged below the second one.
DEVICE_ROSE, DEVICE_SAME = 1.5, 1.25
#: Write amplification rose when it rose by more than this ratio and by more than this difference.
AMPLIFICATION_ROSE, AMPLIFICATION_ROSE_BY = 1.2, 0.15
#: Free blocks fell when they are below this part of what they were.
FREE_BLOCKS_FELL = 0.75
#: Free blocks also fell by more than this share of all; with more than `FREE_BLOCKS_REMAIN` left, they did not run out.
FREE_BLOCKS_FELL_BY, FREE_BLOCKS_REMAIN = 0.005, 0.2
#: Ratios from which a quantity counts as higher than before, and as doubled.
MORE_THAN_BEFORE, DOUBLED = 1.5, 2.0
#: Deletions started when their rate before was no more than this part of their rate after.
DELETIONS_STARTED = 0.1
#: Stored data stopped growing when its growth fell below this part, by more than this many bytes/s; TRIM increased when
#: it did by more than the last figure (bytes/s).
GROWTH_STOPPED, GROWTH_BYTES, TRIM_BYTES = 0.3, 1024.0, 1024.0
#: Least increase of write-back that counts, in bytes.
WRITEBACK_BYTES = 2.0**20
#: Least increase that counts, in seconds, of an engine's delay against its schedule, and of a round trip.
BEHIND_SECONDS, ROUND_TRIP_SECONDS = 0.01, 0.0003
#: Least increase that counts of leader changes or disconnects, per second: one in eight minutes.
BROKER_EVENTS_PER_SECOND = 0.002
#: Least growth of a drive's queue that counts, in requests.
QUEUE_GREW_BY = 0.5
#: Least increase in the share of time of throttled, waiting or stolen CPU time that counts as evidence.
HELD_BACK_RATIO, WAITING_RATIO, STEAL_RATIO = 0.05, 0.25, 0.03
#: A client that a CPU limit throttled for this share of the whole load was its own limit.
CLIENT_LIMITED_RATIO = 0.2
#: CPUs that are busy for at least this share have no time left.
BUSY_RATIO = 0.95
#: Other processes' share of the drive's traffic, from which on they are a neighbour, in bytes or in requests.
NEIGHBOUR_SHARE = 0.25
#: Least share of writes that stayed in memory before the onset, where the page cache absorbed them.
ABSORBED_RATIO = 0.3
#: A page cache that absorbed less than this share of writes, before and after the onset, absorbed none.
NOT_ABSORBED_RATIO = 0.05
#: Dirty pages at this part of their limit throttle writers.
DIRTY_NEAR_LIMIT = 0.8
#: A volume delays requests when its share of time over its limit rose by more than this; below the second share it is
#: within its limits.
LIMIT_EXCEEDED, WITHIN_LIMIT = 0.1, 0.01
#: A checkpoint slows a database down when it takes so much more of the time than before.
CHECKPOINT_ROSE_BY = 0.4
#: From here on NVMe drives throttle, by their usual warning thresholds.
HOT_CELSIUS = 70.0
#: A restart of an engine, or a change of a leader, explains an onset up to this many seconds after it; or, since such
#: events may be recorded late, up to the second number of seconds before it.
NEARBY_EVENT_SECONDS, NEARBY_EVENT_SECONDS_AFTER = 120.0, 30.0
