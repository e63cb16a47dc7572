"""Thresholds of detection and of causes: what decides whether and when a change is a finding, and of which cause.

Ratios, significances, shortest durations and warm-ups stand here, each with its reason, those of all detectors side by
side. What stays in a detector's module is the numerics of how it measures: sizes of buffers and bins, lengths that a
statistic is taken over, weights. `span_lengths.py` says how long the spans are that are looked at, and `verdict.py`
what a verdict takes. Ratios are of a level to the one before; windows are 10 s in the times in brackets.
"""

import math

from cliffwatch.analysis.span_lengths import FAST, HOUR

# What several detectors have in common.

#: A rise of this size and more is a cliff, which the fast detector finds within minutes; a smaller one takes the longer
#: spans of the slow detectors, and is a step.
CLIFF_RATIO = 1.5
#: Another operation is affected, and the primary one is named, when it rose by this factor; what is less is no cliff by
#: its size.
AFFECTED_FROM = 1.3
#: Windows without judgement after a notice, such as of a restart (20 min): caches and queues fill again.
NOTICE_MASK = 120
#: Windows of history after which online detection takes an undeclared warm-up to be over (4 h).
WARM_UP = 4 * HOUR
#: Blocks at the beginning of a run without declared phases in which nothing is judged (1 h). Less than `WARM_UP`,
#: because the whole run shows what the level was afterwards.
WARM_UP_BLOCKS = 60
#: Windows after a finding in which its level settles and nothing else is judged of the series (10 min).
SETTLING = 60
#: A finding that is over after fewer windows than this was no more than an excursion, and has no recovery (30 min).
RECOVERY_WINDOWS = 180
#: A rise that came back within so many windows is no part of any level: an excursion in the same sense.
EXCURSION_WINDOWS = RECOVERY_WINDOWS
#: Windows after a burst of load in which what it raised is still in the medians (30 min).
AFTER_LOAD = 180
#: How much larger a further change has to be in a run that has degraded already, and is noisy.
FURTHER_EXCURSION, FURTHER_STEP = 2.0, 1.5
#: A series that findings are not about has to change alone for so many windows (15 min).
ALONE_WINDOWS = 90
#: A change of another operation that begins so many windows after one that lasts is the same (10 min).
JOIN_WINDOWS = 60
#: Changes of several series so many windows apart are one finding: of the client's latency, and of anything.
TOGETHER_WINDOWS, TOGETHER_WINDOWS_OTHERWISE = 30, 6
#: Online detection may see the device before the client by so many windows.
EARLY_WINDOWS = 12
#: What was raised so many windows before the onset, and lasted, is the same change.
EASED_WINDOWS = 120
#: What was raised and lasted longer than an excursion, or to the end, and is so large and so sure, is a finding
#: although the whole run shows no change there.
LASTED_WINDOWS, LASTED_RATIO, LASTED_CONFIDENCE = RECOVERY_WINDOWS, 3.0, 0.9

#: A rise by less than this that stays within the band in which nine of ten of the baseline's windows were, is
#: what the run has always done, until it has lasted longer than an excursion.
WITHIN_BAND_RATIO = 3.0

#: A finding that lasts is reported again, as an update, when it is this many times as large as last reported.
UPDATE_FACTOR = 2.0

#: A change is over when less than this part of it is left, by the median of so many blocks; what lasted less than this
#: (4 h) teaches the run's detectors what it comes back from.
RETURNED_PART, RETURNED_BLOCKS, TAUGHT_WINDOWS = 0.3, 10, 4 * HOUR

# How sure a finding is, from 0 to 1.

#: A device shows the same, none was measured, or one was and does not show it.
CORROBORATED_CONFIDENCE, UNMEASURED_CONFIDENCE, ALONE_CONFIDENCE = 0.9, 0.6, 0.5
#: A cliff that a device shows, drift that one shows, a stall, and what a single series shows: rare spikes, a shortfall.
CLIFF_CONFIDENCE, DRIFT_CONFIDENCE, STALL_CONFIDENCE, LONE_CONFIDENCE = 0.95, 0.8, 0.9, 0.7
#: A step of a whole run that a device shows: at least, more by each standard deviation, and at most.
SEGMENT_CONFIDENCE, SEGMENT_CONFIDENCE_BY, SEGMENT_CONFIDENCE_MOST = 0.8, 0.02, 0.99

# What devices and load show beside a rise of the client's.

#: A level that differs by less has not moved, whatever its noise.
LEVEL_MOVED = 1.04
#: A device is slower over minutes: by this factor and so many of its standard deviations; and by so many where it
#: speaks for a rise by itself.
DEVICE_MOVED, DEVICE_SIGMAS, DEVICE_ALONE_SIGMAS = 1.12, 3.0, 4.0
#: It speaks for a rise from this share of it on, as logarithms, or from this factor on.
DEVICE_SHARE, DEVICE_ENOUGH = 0.25, 1.5
#: The same in single windows, which are noisier.
WINDOW_MOVED, WINDOW_SIGMAS, WINDOW_SHARE, WINDOW_ENOUGH = 1.15, 4.0, 0.15, 1.4
#: The same of a whole run's level.
SEGMENT_DEVICE_SHARE, SEGMENT_DEVICE_ENOUGH = 0.25, 1.3
#: The same over the hours of a drift.
DRIFT_DEVICE_MOVED, DRIFT_DEVICE_SHARE = 1.08, 0.25
#: Another operation joins a change when it rose by so many of its standard deviations.
JOIN_SIGMAS = 4.0
#: There is more load than before: in the windows of a rise, over a span, and against the hours before; in standard
#: deviations of the rate, of a span, of blocks within it, of minutes, and over a whole run.
MORE_LOAD_AT_ONCE, MORE_LOAD = 1.03, 1.06
MORE_LOAD_AT_ONCE_SIGMAS, MORE_LOAD_SIGMAS, BURST_SIGMAS, BUSY_SIGMAS = 3.0, 2.0, 4.0, 3.5
SEGMENT_MORE_LOAD_SIGMAS = 2.5
#: More load in the minutes around a spike than in the hour around it.
SPIKES_MORE_LOAD, SPIKES_MORE_LOAD_SIGMAS = 1.05, 5.0

# What healthy is.

#: A run that improves by this much (a logarithm) gets a new baseline; less is noise of the hours.
IMPROVEMENT = 0.02
#: By how much the last minutes are below the recent level (a logarithm) in a run that improves fast.
BELOW_LEAST = 0.1
#: Noise of this part of a clock's tick makes medians of what the ticks alone would hide.
DITHERED = 0.8
#: Blocks just before a rise with which its load is compared: near enough that a daily swing is not more load; and the
#: fewest that make a comparison.
LOAD_BEFORE_BLOCKS, LOAD_BEFORE_MINIMUM = 20, 10
#: From this share of a span's blocks on, a burst of load that is over has raised the span.
BURST_SHARE = 0.2

# Work that was not done (online/work_judge.py).

#: For so long nothing is completed in a stall: what is the longest that an operation may take (`stalls.py`).
STALL_SECONDS = 10.0
#: And so many operations would have been, at the rate before: where there are fewer, none may have been due.
STALL_OPERATIONS = 20.0
#: So many windows with operations say what the rate was.
RATE_WINDOWS = 10
#: From so many stalls on, those that follow are counted with the last of them.
STALLS_APART = 3
#: Below this part of what it was the rate has fallen, if it stays so for so many windows and seconds (10 min); from the
#: other part on it has come back.
SHORTFALL_RATIO, SHORTFALL_OVER = 0.5, 0.75
SHORTFALL_WINDOWS, SHORTFALL_SECONDS = 60, 600.0
#: A latency that is so many times what it was accounts for less operations of clients that wait for each.
SLOWER_RATIO = 1.3

# Cliffs: the fast detector (online/excursion.py).

#: An excursion begins above this factor and so many standard deviations, and is over below this part of that.
ENTER_RATIO, ENTER_SIGMAS, LEAVE_PART = 1.3, 4.5, 0.6
#: A cliff is so many standard deviations high; from this factor on it is large, and waits less where it is alone.
CLIFF_SIGMAS, LARGE_RATIO = 5.0, 3.0
#: Excursions from this part of a rise's height on are like it. It outlasts the longest of them by this factor, and by
#: one of the others divided by how many there were: where another is due, and where none is.
ALIKE_PART, OUTLAST, OUTLAST_DUE, OUTLAST_FEW = 0.6, 1.2, 1.6, 0.8

#: How long a rise lasts at least, in windows, before it is called: by what speaks for it.
CORROBORATED = FAST
#: The same for a rise that is not much larger than what runs come back from.
CORROBORATED_SMALL, SMALL_RATIO = 15, 2.2
#: Where no device was measured, where one was and stayed as it was, while there is more load than before, which is
#: waited for as long as a burst lasts (30 min), and where too little is known of the run's own excursions.
ALONE, CONTRADICTED, DURING_MORE_LOAD, UNLEARNED = 30, 72, 180, 40
#: So many tolerances away from its moment a rise is none of those that keep a period: few of them say badly how well.
OFF_SCHEDULE = 1.5
#: A run's own excursions may delay a corroborated rise up to this (12 min), and another one (1 h).
PATIENCE, PATIENCE_OTHERWISE = 72, 360
#: In how many of their standard deviations client and device together rise at least where the device alone wavers.
EXCURSION_TOGETHER = 12.0
#: What is over already is not called: its last windows against its highest.
STILL_THERE = 0.6
#: After so many windows below, what is below this part of its height has come back; a step that wavers has not.
RETURN_SETTLING, RETURNED = 8, 0.35

# Excursions that come at intervals (online/recurrence.py).

#: So many intervals make a period; fewer only suggest one.
INTERVALS_LEAST = 5
#: How far from its moment one may be: in spreads of those seen, and at least in windows and as a part of a period.
RECURRENCE_SPREADS, RECURRENCE_WINDOWS_LEAST, RECURRENCE_PART_LEAST = 3.5, 12.0, 0.06
#: One that is so many times as far off as usual came off schedule, and does not make the others irregular.
RECURRENCE_OFF_SCHEDULE = 6.0
#: What is due for more than this part of a period, on either side, has none.
TOLERANCE_MOST = 0.4
#: A single interval says little of how far off the next may be: this part of a period at least.
RECURRENCE_PART_OF_ONE = 0.15

# Cliffs that no noise explains (online/absolute.py).

#: How many times the baseline most windows are at least, and for how many windows: where a device slowed down too
#: (as long as a run's own excursions may delay a cliff), and where none did or none was measured.
CORROBORATED_RATIO, CORROBORATED_WINDOWS = 10.0, PATIENCE
ABSOLUTE_ALONE_RATIO, ABSOLUTE_ALONE_WINDOWS = 20.0, 120
#: A rise of the client and of a device, each by its own baseline, that is this severe is called as soon as all of so
#: many windows are beyond it, if it is the first of its like: one that falls may be over before 72 windows.
SEVERE_RATIO, SEVERE_DEVICE_RATIO, SEVERE_WINDOWS = 20.0, 10.0, 15
#: Which share of these windows, and by how much they are above all but a few of the baseline's own.
ABSOLUTE_SHARE, ABOVE_BAND = 0.65, 1.5
#: From this ratio to its own baseline a device is slower.
ABSOLUTE_DEVICE_RATIO = 2.0
#: What has changed already is far beyond that when it is so many times as high.
FAR_BEYOND = 3.0

# Steps found online, without later windows (online/steps.py).

#: By how much a span has to exceed the hours before it to be a step, by span in blocks: what is short may be an
#: accident and has to be larger.
STEP_RATIOS = {8: 1.15, 12: 1.13, 20: 1.12, 30: 1.11, 60: 1.11}
#: In how many of the run's own standard deviations a span exceeds the hours before, by span in blocks.
STEP_SIGNIFICANCE = {8: 5.0, 12: 4.6, 20: 4.2, 30: 4.0, 60: 4.0}
#: The client's own part of it; and what one of the two can contribute at most.
STEP_OWN_SIGNIFICANCE, STEP_ENOUGH = 2.2, 8.0
#: Without a device that shows the same, a step has to be longer and larger.
ALONE_SPAN, STEP_ALONE_RATIO, STEP_ALONE_SIGNIFICANCE = 30, 1.15, 6.0
CONTRADICTED_SPAN = 60
#: A device that rose by its share, but not by more than its own noise, does not contradict.
INCONCLUSIVE_SPAN = 20
#: Which part of what may be one tick of the clock a device has to show.
SHARE_OF_TICK = 0.45
#: A span from which on a device needs to show less.
LONG_SPAN = 20
#: The share of a step, and the standard deviations, that a device shows at least: in spans below that, and from it on.
STEP_DEVICE_SHORT, STEP_DEVICE_LONG = (0.3, 3.5), (0.25, 2.2)
#: A short span has to exceed what the run came back from by this factor.
STEP_BEYOND_PAST = 1.1
#: A step is still there: its last block as a part of it. It is neither over nor growing: its last blocks, too.
STEP_STILL_THERE, STEP_STEADY = 0.4, (0.6, 1.7)
#: What is no more than this times a tick of the clock may be one.
TICK_ROOM = 1.1
#: While an undeclared warm-up may go on, a step takes so many blocks.
WARMING_SPAN = 30
#: A run whose level falls by more than this (a logarithm) within an hour warms up.
FALLING = 0.06
#: What share of a step's error a clearly better ramp leaves.
CLEARLY_GRADUAL = 0.8
#: How long after a block its statistics count as healthy, in blocks: a step would have been found by then.
QUARANTINE = 60

# Steps and cliffs of a whole run (offline/segments.py, offline/changes.py).

#: How large a segment's rise is at least: its length is known, so it may be less than a short span online, and it is
#: held against the lowest level before it too.
SEGMENT_RATIO = 1.12
#: In how many of the run's own standard deviations a change is, by whether a device shows the same. Fewer than online:
#: the spread is that of the whole run.
SEGMENT_SIGNIFICANCE = 3.6
SEGMENT_OWN_SIGNIFICANCE, SEGMENT_DEVICE_SIGNIFICANCE = 1.9, 2.2
SEGMENT_ALONE_SIGNIFICANCE = 5.0
SEGMENT_CONTRADICTED_SIGNIFICANCE, SEGMENT_CONTRADICTED_RATIO = 6.0, 1.25
#: A run that has degraded is noisy; a further change is at least so large and so significant.
FURTHER_RATIO, FURTHER_SIGNIFICANCE = 1.5, 6.0
#: What returns within so many blocks was no change of level (45 min).
RETURNS_BLOCKS = 45
#: What a further segment costs, in units of the usual penalty for one (log of the length, for each column).
SEGMENT_PENALTY = 1.5
#: Client and device share half of their noise: the spread of the sum of both, in standard deviations.
SEGMENT_JOINT = math.sqrt(3)
#: A run has so many blocks at least to be judged as a whole, and so many are before an edge.
BLOCKS_LEAST, EDGE_BLOCKS_BEFORE = 24, 3
#: Another series says when a change began if it moved by so much (a logarithm), and so many standard deviations more.
ONSET_MOVED, ONSET_SIGMAS = 0.03, 1.5
#: A device may slow down so many blocks before its client does.
LEAD_BLOCKS = 12
#: A change shows in so many blocks at least; a small one near the end of a run in more.
TAIL_BLOCKS, TAIL_BLOCKS_SMALL = 4, 20

# Drift.

#: A daily swing of ±10 % is healthy: its highest is 1.1 / 0.9 = 1.222 times its lowest. Drift is more than that by 1 %.
DRIFT_RATIO = 1.235
#: The daily swing, from its middle; and as a logarithm, with a little for its shape, where it is fitted to a course.
SWING, FITTED_SWING = 0.1, 0.105
#: Drift is raised above `DRIFT_RATIO` to the baseline plus so much of the run's own noise.
DRIFT_SIGNIFICANCE = 2.0
#: Or when it rose within hours by more than a daily swing does, plus this and the run's own noise.
DRIFT_MARGIN = 0.03
DRIFT_SIGNIFICANCE_BEFORE = 3.0
#: By how much more, online, when the device is measured and has not risen: a factor on what is asked for.
DRIFT_CONTRADICTED_BY = 1.15
#: The same of a whole run, instead of `DRIFT_RATIO` (1.14 times that): a ratio to the level before.
DRIFT_CONTRADICTED_RATIO = 1.4
#: Which part of the noise's share a device that rises about as much takes away.
DRIFT_TOGETHER, DRIFT_TOGETHER_SHARE = 0.4, 0.6
#: Or when its course in half hours has risen by this ratio, and a daily swing is so much worse a description of client
#: and device together; of the client alone where no device is measured.
JOINT_DRIFT_RATIO, JOINT_DRIFT_BY_SWING = 1.17, 1.5
CLIENT_DRIFT_RATIO, CLIENT_DRIFT_BY_SWING = 1.22, 3.0
#: And is this ratio above the baseline.
JOINT_DRIFT_RATIO_MINIMUM = 1.15
#: Fewer half hours than this show no course: what rises could be any part of a swing. A device has this share in it.
JOINT_DRIFT_HALVES, JOINT_DRIFT_DEVICE_SHARE = 12, 0.3
#: What is this far above a run's lowest half hours at its beginning (a logarithm) is its warm-up.
COLD = 0.08
#: Drift of a whole run takes no less than two hours, in blocks of 10 min.
DRIFT_SHORTEST = 12
#: And is fitted to a run of at least 6 h behind its baseline, in blocks; of a shorter one, what was raised counts.
DRIFT_RUN_BLOCKS = 360

# Spikes.

#: A spike is a window above the recent level by this factor and so many standard deviations of windows.
SPIKE_RATIO, SPIKE_SIGMAS = 1.5, 4.5
#: Spikes from this part of its height on are like it.
SPIKE_ALIKE = 0.7
#: A rise of more windows than this is not a spike.
SPIKE_WINDOWS = 8
#: A new one begins after more than so many windows without: what flickers is one rise, not many spikes.
SPIKE_QUIET = 5
#: Starts further apart than this do not belong to one train (30 min).
SPIKES_APART = 180
#: How unlikely a train must be by chance, by whether the device has the same spikes.
SPIKE_CHANCE, SPIKE_CHANCE_CORROBORATED = 1e-6, 5e-4
#: And what two spikes that the device had too are enough for: 12 min in 7 h, and twice as high.
CHANCE_OF_TWO, HEIGHT_OF_TWO = 0.03, math.log(2)
#: A train of a whole run has at least so many spikes.
SPIKES_MINIMUM = 5
#: A train of spikes is over after so many windows without one (a notice alone hides `NOTICE_MASK`), or after so many
#: times the distance that its spikes had, whichever is later.
TRAIN_OVER_WINDOWS, TRAIN_OVER_DISTANCES = SPIKES_APART, 10

# Rare spikes (online/rare_spikes.py).

#: So many spikes are one kind, if the lowest of them is so many times the recent level, and by a gap above the highest
#: of all that are none of them, no narrower than they lie apart.
RARE_RATIO = 8.0
#: By how many there are at least; the fewer, the likelier it is that chance has made the gap.
RARE_GAPS = ((8, 1.6), (5, 2.5), (3, 5.0))
#: What is no such spike is a rise at all from this ratio on.
RARE_RISE = 2.0
#: They are rare: no more than this part of all windows.
RARE_SHARE = 0.05
#: They were there from the start, if the first came before so many of their own distances.
RARE_FROM_START = 1.5

# Layers.

#: A difference below this part of the client's latency is rounding and not worth a name.
NEGLIGIBLE_PART = 0.05
#: A layer became slower when it takes this many times as long, and that is this part of the rise, and of what an
#: operation took before.
LAYER_SLOWER, LAYER_PART, LAYER_NOTICEABLE = 1.5, 0.1, 0.3
#: Or, for the device: when its requests became slower by at least this share of the operations' own factor, as
#: logarithms. What waits for a drive queues up above it, and may take nearly all of the rise there.
LAYER_DEVICE_SHARE = 0.5
#: From this factor of the time from when an operation began, a schedule that slips is a consequence.
SERVICE_ROSE = 1.25

# Causes. docs/causes.md holds the same for people.

#: A cause is named from this sum of weights on: one strong piece of evidence with nothing against it.
NAMED_FROM = 3.0
#: The drive's latency counts as risen from this factor on, and as unchanged below the second one.
DEVICE_ROSE, DEVICE_SAME = 1.5, 1.25
#: More load than before, as a factor.
LOAD_ROSE = 1.25
#: Write amplification that rose by this factor and this much.
AMPLIFICATION_ROSE, AMPLIFICATION_ROSE_BY = 1.2, 0.15
#: Free blocks that fell to this part of what they were.
FREE_BLOCKS_FELL = 0.75
#: And by at least this share of all; with more than the other one left, they did not run out.
FREE_BLOCKS_FELL_BY, FREE_BLOCKS_REMAIN = 0.005, 0.2
#: Resources count as asked for more than before, and as doubled, by these factors.
MORE_THAN_BEFORE, DOUBLED = 1.5, 2.0
#: Deletions started when there were no more before than this part of what there are.
DELETIONS_STARTED = 0.1
#: What is stored stopped growing when it grows by less than this part; less than this in bytes/s, or of TRIM, is none.
GROWTH_STOPPED, GROWTH_BYTES, TRIM_BYTES = 0.3, 1024.0, 1024.0
#: Write-back that grew by less is none.
WRITEBACK_BYTES = 2.0**20
#: An engine is behind its schedule, and a round trip is longer, by at least so many seconds.
BEHIND_SECONDS, ROUND_TRIP_SECONDS = 0.01, 0.0003
#: More leader changes or disconnects than before, by so many a second: one in eight minutes.
BROKER_EVENTS_PER_SECOND = 0.002
#: A drive's queue grew by so many requests at least.
QUEUE_GREW_BY = 0.5
#: Share of time, from which on held-back, waiting or stolen processor time can explain anything.
HELD_BACK_RATIO, WAITING_RATIO, STEAL_RATIO = 0.05, 0.25, 0.03
#: Held back by a processor limit for so much of the whole load, the client was its own limit.
CLIENT_LIMITED_RATIO = 0.2
#: Processors that are so busy have no time left.
BUSY_RATIO = 0.95
#: Other processes' share of the drive's traffic, from which on they are a neighbour, in bytes or in requests.
NEIGHBOUR_SHARE = 0.25
#: Share of what was written that stayed in memory before the onset, when the page cache took it.
ABSORBED_RATIO = 0.3
#: With less than this, before and after, it took none.
NOT_ABSORBED_RATIO = 0.05
#: Dirty pages so near their limit hold writers up.
DIRTY_NEAR_LIMIT = 0.8
#: Over its limit for so much of the time, a volume holds its requests up; below the other one it does not.
LIMIT_EXCEEDED, WITHIN_LIMIT = 0.1, 0.01
#: From here on NVMe drives throttle, by their usual warning thresholds.
HOT_CELSIUS = 70.0
#: An engine that is started again, or a leader that moves, explains what begins within so many seconds after it, or as
#: long before it is seen.
NEARBY_EVENT_SECONDS, NEARBY_EVENT_SECONDS_AFTER = 120.0, 30.0
