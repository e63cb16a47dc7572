"""Thresholds of detection: they decide whether and when a change is a finding. `causes/` has those of causes.

Ratios, significances, shortest durations and warm-ups of all detectors are side by side here, each with its reason. A
detector's own module has only the numerics of its measurement: sizes of buffers and bins, lengths of statistics,
weights. `span_lengths.py` has the lengths of the spans, and `verdict.py` the thresholds of the verdict. Ratios are of a
level to the one before; times in brackets are for windows of 10 s.
"""

import math

from cliffwatch.analysis.span_lengths import FAST, HOUR

# What several detectors have in common.

#: A rise by this ratio and more is a cliff, which the fast detector finds within minutes; a smaller rise needs the
#: longer spans of the slow detectors, and is a step.
CLIFF_RATIO = 1.5
#: An operation is affected by a finding, and the finding may be restated for it, when it rose by this ratio; a cliff of
#: a whole run whose size has a smaller ratio is none.
AFFECTED_FROM = 1.3
#: Windows that are not judged after a notice, such as of a restart (20 min): caches and queues fill again.
NOTICE_MASK = 120
#: A declared baseline of at least so many windows ends where the level rose by this ratio and stayed up to the phase's
#: end.
BASELINE_WINDOWS, BASELINE_ROSE = 60, 1.7
#: Windows before that rise, at least.
BASELINE_LEAST = 12
#: Shares of the windows before that rise, where there may have been excursions, and since, that are on their side of
#: the middle between the levels.
BASELINE_APART = (0.6, 0.9)
#: A declared baseline that is slower by this ratio than an hour after it was slow, and is said to be.
SLOW_BASELINE = 1.5
#: Windows of history after which an undeclared warm-up counts as over in online detection (4 h).
WARM_UP = 4 * HOUR
#: Blocks at the beginning of a run without declared phases in which nothing is judged (1 h). Less than `WARM_UP`,
#: because the whole run shows what the level was afterwards.
WARM_UP_BLOCKS = 60
#: Windows after a finding in which its level settles and the series is not judged (10 min).
SETTLING = 60
#: A finding that is over after fewer windows than this was only an excursion, and has no recovery (30 min).
RECOVERY_WINDOWS = 180
#: A rise that came back within this many windows is an excursion too, and the slow detectors' levels exclude it.
EXCURSION_WINDOWS = RECOVERY_WINDOWS
#: Windows after a burst of load in which its effect is still in the medians (30 min).
AFTER_LOAD = 180
#: Ratio, and standard deviations of a few windows' level, from which a drive's write amplification has risen: a slower
#: client is then none of the excursions in which it did not rise.
AMPLIFIED, AMPLIFIED_SIGMAS = 1.1, 4.0
#: Factor by which a further change has to be larger in a run that has degraded already, and is noisy.
FURTHER_EXCURSION, FURTHER_STEP = 2.0, 1.5
#: Windows for which a secondary series has to change alone to be reported (15 min).
ALONE_WINDOWS = 90
#: A change of another operation that begins up to this many windows after an active change is part of it (10 min).
JOIN_WINDOWS = 60
#: Changes of several series up to this many windows apart are one finding: sudden changes, and changes of other kinds.
TOGETHER_WINDOWS, TOGETHER_WINDOWS_OTHERWISE = 30, 6
#: Online detection may raise a change up to this many windows before its onset, since it may see the device first.
EARLY_WINDOWS = 12
#: A change raised up to this many windows before an onset, and lasting until then, is the same change.
EASED_WINDOWS = 120
#: A cliff that was raised, lasted longer than an excursion, or to the end, and has this ratio, or the second one at
#: worst, and this confidence, is a finding although the whole run shows no change there.
LASTED_WINDOWS, LASTED_RATIO, LASTED_WORST_RATIO, LASTED_CONFIDENCE = RECOVERY_WINDOWS, 3.0, 4.0, 0.9
#: So is any change that was raised and lasted for an hour at this ratio, however noisy the run.
HOUR_RATIO = 1.6
#: So is any sudden change that a device shows and that went on to the end of the load for as many windows (2 h). Where
#: it is this part of a drift's rise (as logarithms), the run has that change, and no drift.
UNENDED_WINDOWS, SUDDEN_PART = 2 * HOUR, 0.4

#: A rise by less than this ratio, within the band in which nine of ten of the baseline's windows were, is the run's
#: normal variation, until it has lasted longer than an excursion.
WITHIN_BAND_RATIO = 3.0

#: A finding that lasts is reported again, as an update, when it is this many times as large as last reported.
UPDATE_FACTOR = 2.0

#: A change is over when no more than this part of it remains, by the median of `RETURNED_BLOCKS`; a change that lasted
#: less than `TAUGHT_WINDOWS` (4 h) is added to the excursions from which the run comes back.
RETURNED_PART, RETURNED_BLOCKS, TAUGHT_WINDOWS = 0.3, 10, 4 * HOUR

# Confidence of a finding, from 0 to 1.

#: Confidence where a device shows a change too, where none was measured, and where one was and does not show it.
CORROBORATED_CONFIDENCE, UNMEASURED_CONFIDENCE, ALONE_CONFIDENCE = 0.9, 0.6, 0.5
#: Confidence of a cliff and of a drift that a device shows, of a stall, and of rare spikes and shortfalls (one series).
CLIFF_CONFIDENCE, DRIFT_CONFIDENCE, STALL_CONFIDENCE, LONE_CONFIDENCE = 0.95, 0.8, 0.9, 0.7
#: Confidence of a step of a whole run that a device shows: least, increase per standard deviation, and most.
SEGMENT_CONFIDENCE, SEGMENT_CONFIDENCE_BY, SEGMENT_CONFIDENCE_MOST = 0.8, 0.02, 0.99

# Evidence of devices and load on a rise of the client's latency.

#: A level that differs by a smaller ratio has not changed, whatever its noise.
LEVEL_MOVED = 1.04
#: A device is slower over minutes when it rose by this ratio and this many of its standard deviations; the last figure
#: is the standard deviations with which it corroborates a rise whatever the client's significance.
DEVICE_MOVED, DEVICE_SIGMAS, DEVICE_ALONE_SIGMAS = 1.12, 3.0, 4.0
#: A device corroborates a rise from this share of the rise on (as logarithms), or from this ratio on.
DEVICE_SHARE, DEVICE_ENOUGH = 0.25, 1.5
#: For single windows, which are noisier: a device's ratio and standard deviations; its share of a rise, or its ratio.
WINDOW_MOVED, WINDOW_SIGMAS, WINDOW_SHARE, WINDOW_ENOUGH = 1.15, 4.0, 0.15, 1.4
#: Share of a rise, or ratio, from which a device corroborates a change of level of the whole run.
SEGMENT_DEVICE_SHARE, SEGMENT_DEVICE_ENOUGH = 0.25, 1.3
#: Ratio, and share of the client's rise, from which a device corroborates a drift over hours.
DRIFT_DEVICE_MOVED, DRIFT_DEVICE_SHARE = 1.08, 0.25
#: Another operation joins a change when it rose by this many of its standard deviations.
JOIN_SIGMAS = 4.0
#: Load is higher than before from these ratios of the rate on: in the windows of a rise, and over a longer time. The
#: standard deviations that it also takes: in the windows of a rise, over a span, in blocks of a span, against the hours
#: before, and in a whole run.
MORE_LOAD_AT_ONCE, MORE_LOAD = 1.03, 1.06
MORE_LOAD_AT_ONCE_SIGMAS, MORE_LOAD_SIGMAS, BURST_SIGMAS, BUSY_SIGMAS = 3.0, 2.0, 4.0, 3.5
SEGMENT_MORE_LOAD_SIGMAS = 2.5
#: Ratio and standard deviations by which load is higher in the minutes around a spike than in the hour around it.
SPIKES_MORE_LOAD, SPIKES_MORE_LOAD_SIGMAS = 1.05, 5.0

# Baseline and recent level.

#: A run that improves by this much (a logarithm) gets a new baseline; a smaller improvement is noise of the hours.
IMPROVEMENT = 0.02
#: A run improves fast when its last minutes are below the recent level by more than this (a logarithm).
BELOW_LEAST = 0.1
#: Noise of more than this part of a clock's tick dithers it, so that medians show what the ticks alone would hide.
DITHERED = 0.8
#: Blocks just before a rise with which its load is compared: near enough that a daily swing is not more load; and the
#: fewest that make a comparison.
LOAD_BEFORE_BLOCKS, LOAD_BEFORE_MINIMUM = 20, 10
#: A burst of load that is over has raised a span if more than this share of the span's blocks are in the burst.
BURST_SHARE = 0.2

# Stalls and shortfalls (online/work_judge.py).

#: Least length of a stall: the longest that an operation may take (`LONGEST_SECONDS` in `stalls.py`).
STALL_SECONDS = 10.0
#: Least operations that would have completed in a stall, at the rate before: with fewer, possibly none was due.
STALL_OPERATIONS = 20.0
#: Windows with operations from which the rate is known. Silence from before is a stall, too, if it was this many times
#: as long as all others until then.
RATE_WINDOWS, EARLY_STALL_LONGER = 10, 3
#: After this many stalls, further ones are counted with the last of them.
STALLS_APART = 3
#: The rate has a shortfall below this part of its healthy level, if that lasts for this many windows and this many
#: seconds (10 min); from the second part on it has come back.
SHORTFALL_RATIO, SHORTFALL_OVER = 0.5, 0.75
SHORTFALL_WINDOWS, SHORTFALL_SECONDS = 60, 600.0
#: A latency this many times as high as before accounts for fewer operations of clients that wait for each of them.
SLOWER_RATIO = 1.3

# Cliffs: the fast detector (online/excursion.py).

#: An excursion begins above this ratio and this many standard deviations, and is over below `LEAVE_PART` of these.
ENTER_RATIO, ENTER_SIGMAS, LEAVE_PART = 1.3, 4.5, 0.6
#: Least height of a cliff in standard deviations; a cliff of `LARGE_RATIO` and more is raised sooner where no device
#: was measured.
CLIFF_SIGMAS, LARGE_RATIO = 5.0, 3.0
#: Excursions from this part of a rise's height on are like it. The rise has to outlast the longest of them by
#: `OUTLAST`, plus `OUTLAST_DUE` where another is due, or `OUTLAST_FEW` where none is, divided by their number.
ALIKE_PART, OUTLAST, OUTLAST_DUE, OUTLAST_FEW = 0.6, 1.2, 1.6, 0.8

#: Least windows of a rise before it is raised, where a device corroborates it.
CORROBORATED = FAST
#: Least windows of a corroborated rise below `SMALL_RATIO`, which is not much larger than common excursions.
CORROBORATED_SMALL, SMALL_RATIO = 15, 2.2
#: Least windows of a rise where no device was measured; where one was and did not change; while load is higher than
#: before, for as long as a burst lasts (30 min); and where too little is known of the excursions of the run, or of the
#: level since its last change.
ALONE, CONTRADICTED, DURING_MORE_LOAD, UNLEARNED = 30, 72, 180, 40
#: A rise this many tolerances away from its due time is none of the periodic excursions: a tolerance from few
#: excursions is not exact.
OFF_SCHEDULE = 2.0
#: Most windows by which a run's own excursions may delay a corroborated rise (12 min), and any other rise (1 h).
PATIENCE, PATIENCE_OTHERWISE = 72, 360
#: Least sum of the client's and the device's rise, each in its standard deviations, where the device alone is not
#: significant enough.
EXCURSION_TOGETHER = 12.0
#: A rise whose last windows are below this part of its highest level is over already, and is not raised.
STILL_THERE = 0.6
#: An excursion has come back if the level is below this part of its height after this many windows; a step that wavers
#: has not.
RETURN_SETTLING, RETURNED = 8, 0.35

# Excursions that come at intervals (online/recurrence.py).

#: Intervals that make a period; fewer only suggest one.
INTERVALS_LEAST = 5
#: Tolerance of a due time: in spreads of the deviations seen, and at least in windows and as a part of the period.
RECURRENCE_SPREADS, RECURRENCE_WINDOWS_LEAST, RECURRENCE_PART_LEAST = 3.5, 12.0, 0.06
#: A deviation this many times the median one is of an excursion off schedule, which does not make the others irregular.
RECURRENCE_OFF_SCHEDULE = 6.0
#: Excursions with a tolerance of more than this part of the period, on either side, have no period.
TOLERANCE_MOST = 0.4
#: Least tolerance, as a part of the period, after a single interval, which shows little about the next.
RECURRENCE_PART_OF_ONE = 0.15

# Cliffs that no noise explains (online/absolute.py).

#: Least ratio of most windows to the baseline, and the number of windows: where a device slowed down too (as long as a
#: run's own excursions may delay a cliff), and where no device did or none was measured.
CORROBORATED_RATIO, CORROBORATED_WINDOWS = 10.0, PATIENCE
ABSOLUTE_ALONE_RATIO, ABSOLUTE_ALONE_WINDOWS = 20.0, 120
#: A rise of client and device by these ratios, each to its own baseline, is raised once this many windows of the client
#: are all beyond its ratio, if it is the first of its kind: a rise that falls again may be over before 72 windows.
SEVERE_RATIO, SEVERE_DEVICE_RATIO, SEVERE_WINDOWS = 20.0, 10.0, 15
#: Least share of the windows that have to reach their ratio, and their least ratio to the upper end of the band in
#: which nine of ten of the baseline's windows were.
ABSOLUTE_SHARE, ABOVE_BAND = 0.65, 1.5
#: A device is slower from this ratio to its own baseline on.
ABSOLUTE_DEVICE_RATIO = 2.0
#: A further rise, in a run that has changed already, has to be this many times the level of that change.
FAR_BEYOND = 3.0

# Steps found online, without later windows (online/steps.py).

#: Least ratio of a step's span to the hours before it, by span in blocks: a short rise is likelier to be chance.
STEP_RATIOS = {8: 1.15, 12: 1.13, 20: 1.12, 30: 1.11, 60: 1.11}
#: Least significance of a step, client and device together, in the run's own standard deviations, by span in blocks.
STEP_SIGNIFICANCE = {8: 5.0, 12: 4.6, 20: 4.2, 30: 4.0, 60: 4.0}
#: Least significance of the client alone; and the most that client or device can contribute.
STEP_OWN_SIGNIFICANCE, STEP_ENOUGH = 2.2, 8.0
#: Without a device that shows the step too, a step has to be longer and larger.
ALONE_SPAN, STEP_ALONE_RATIO, STEP_ALONE_SIGNIFICANCE = 30, 1.15, 6.0
CONTRADICTED_SPAN = 60
#: Least span where a device rose by its share but not by more than its own noise, which does not contradict a step.
INCONCLUSIVE_SPAN = 20
#: Share of a step that a device has to show where the step may be one tick of the clock.
SHARE_OF_TICK = 0.45
#: From this span on, in blocks, a device needs to show less.
LONG_SPAN = 20
#: Least share of a step and standard deviations that a device shows: in spans below `LONG_SPAN`, and in longer ones.
STEP_DEVICE_SHORT, STEP_DEVICE_LONG = (0.3, 3.5), (0.25, 2.2)
#: A short span has to exceed the largest rise from which the run came back by this factor (of logarithms).
STEP_BEYOND_PAST = 1.1
#: A step is still there if its last block is at least this part of it. It is neither over nor growing if its last
#: blocks are between these parts of it.
STEP_STILL_THERE, STEP_STEADY = 0.4, (0.6, 1.7)
#: A step of no more than this many ticks of the clock may be one tick.
TICK_ROOM = 1.1
#: While an undeclared warm-up may go on, a step needs a span of this many blocks.
WARMING_SPAN = 30
#: A run whose level falls by more than this (a logarithm) within an hour is warming up.
FALLING = 0.06
#: A rise is gradual if a ramp's squared error is below this multiple of a step's, clearly so below the second; a drift
#: is a step that was found late from the third on.
GRADUAL, CLEARLY_GRADUAL, SUDDEN_RISE = 1.1, 0.8, 1.15
#: Blocks after which a block's statistics count as healthy: a step would have been found by then.
QUARANTINE = 60

# Steps and cliffs of a whole run (offline/segments.py, offline/changes.py).

#: Least rise of a segment (a ratio): its length is known, so it may be less than for a short span online, and it is
#: also compared with the lowest level before it.
SEGMENT_RATIO = 1.12
#: Least significance of a change in the run's own standard deviations, with and without a device that shows it.
#: It is lower than online: the spread is that of the whole run.
SEGMENT_SIGNIFICANCE = 3.6
SEGMENT_OWN_SIGNIFICANCE, SEGMENT_DEVICE_SIGNIFICANCE = 1.9, 2.2
SEGMENT_ALONE_SIGNIFICANCE = 5.0
SEGMENT_CONTRADICTED_RATIO = 1.25
#: Part of a rise by which the level may change within it; what changes more ends it.
SEGMENT_WITHIN = 0.25
#: A run that has degraded is noisy: a further change needs at least this ratio and this significance.
FURTHER_RATIO, FURTHER_SIGNIFICANCE = 1.5, 6.0
#: A rise that comes back within this many blocks was no change of level (45 min).
RETURNS_BLOCKS = 45
#: Penalty for a further segment, in units of the usual one (log of the length, for each column).
SEGMENT_PENALTY = 1.5
#: Standard deviation of the sum of client and device, each in its standard deviations: they share half of their noise.
SEGMENT_JOINT = math.sqrt(3)
#: Least blocks of a run that is judged as a whole, and least blocks before an edge.
BLOCKS_LEAST, EDGE_BLOCKS_BEFORE = 24, 3
#: Another series helps to locate an onset if it rose by at least this (a logarithm) plus this many standard deviations.
ONSET_MOVED, ONSET_SIGMAS = 0.03, 1.5
#: A device may slow down up to this many blocks before its client does.
LEAD_BLOCKS = 12
#: Least blocks that a cliff, and that a smaller change, has to last: this matters near the end of a run.
TAIL_BLOCKS, TAIL_BLOCKS_SMALL = 4, 20

# Drift.

#: A daily swing of ±10 % is healthy: its highest is 1.1 / 0.9 = 1.222 times its lowest. Drift is more than that by 1 %.
DRIFT_RATIO = 1.235
#: The daily swing, from its middle; and as a logarithm, with a margin for its shape, where it is fitted to a timeline.
SWING, FITTED_SWING = 0.1, 0.105
#: Drift is raised above `DRIFT_RATIO` to the baseline plus this many standard deviations of the run's own noise.
DRIFT_SIGNIFICANCE = 2.0
#: Drift is also raised when the level rose within hours by more than a daily swing can, plus this (a logarithm) and
#: `DRIFT_SIGNIFICANCE_BEFORE` standard deviations of the run's own noise.
DRIFT_MARGIN = 0.03
DRIFT_SIGNIFICANCE_BEFORE = 3.0
#: Online, a factor on the least ratio of a drift when a device is measured and has not risen.
DRIFT_CONTRADICTED_BY = 1.15
#: In a whole run, the least ratio of such a drift to the level before, instead of `DRIFT_RATIO` (1.13 times that).
DRIFT_CONTRADICTED_RATIO = 1.4
#: Part of the margin for noise that is waived when a device rises too, by at least `DRIFT_TOGETHER_SHARE` of the rise.
DRIFT_TOGETHER, DRIFT_TOGETHER_SHARE = 0.4, 0.6
#: Drift is also raised when the level in half hours rose by this ratio, and the squared error of a daily swing is this
#: many times that of the rise: for client and device together, and for the client alone where no device is measured.
JOINT_DRIFT_RATIO, JOINT_DRIFT_BY_SWING = 1.17, 1.5
CLIENT_DRIFT_RATIO, CLIENT_DRIFT_BY_SWING = 1.22, 3.0
#: Least ratio of the level to the baseline for a drift found in half hours.
JOINT_DRIFT_RATIO_MINIMUM = 1.15
#: Most that a healthy level swings by in a day, up and down, beside the ramp whose begin is searched for; and the part
#: of the squared errors that is left where a run has such a swing.
DAILY_SWING, DAILY_SWING_LEAVES = 1.1, 1 / 3
#: Fewer half hours than this show no drift: a rise could be any part of a swing. A device rises by at least this share.
JOINT_DRIFT_HALVES, JOINT_DRIFT_DEVICE_SHARE = 12, 0.3
#: Half hours at the beginning of a run that are this far above its lowest half hours (a logarithm) are its warm-up.
COLD = 0.08
#: Drift of a whole run takes at least two hours, in blocks of 10 min.
DRIFT_SHORTEST = 12
#: Steps are part of a drift with a squared error below this multiple of a step's, and of a drift's besides them.
CLEARLY_A_RAMP, STEPS_APART = 0.5, 1.5
#: Drift is fitted to a run of at least 6 h after its baseline, in blocks; in a shorter run, a raised drift counts.
DRIFT_RUN_BLOCKS = 360

# Spikes.

#: A spike is a window above the recent level by this ratio and this many standard deviations of windows.
SPIKE_RATIO, SPIKE_SIGMAS = 1.5, 4.5
#: Spikes from this part of a spike's height on are like it.
SPIKE_ALIKE = 0.7
#: A rise of more windows than this is not a spike.
SPIKE_WINDOWS = 8
#: A new spike begins after more than this many windows without a rise: a level that flickers is a single rise.
SPIKE_QUIET = 5
#: Starts further apart than this do not belong to one train (30 min).
SPIKES_APART = 180
#: Spikes are a train below this probability of chance; the second where the device has the same spikes.
SPIKE_CHANCE, SPIKE_CHANCE_CORROBORATED = 1e-6, 5e-4
#: Two spikes are enough if the device had them too, fewer than this are expected by chance (12 min in 7 h), and they
#: are twice as high as the recent level (a logarithm).
CHANCE_OF_TWO, HEIGHT_OF_TWO = 0.03, math.log(2)
#: Least number of spikes of a train of a whole run; most distances of its own at which an earlier spike is one of it.
SPIKES_MINIMUM, SPIKES_BEFORE = 5, 2.0
#: A train of spikes is over after this many windows without one (a notice alone hides `NOTICE_MASK`), or after this
#: many times the distance that its spikes had, whichever is later.
TRAIN_OVER_WINDOWS, TRAIN_OVER_DISTANCES = SPIKES_APART, 10

# Rare spikes (online/rare_spikes.py).

#: Spikes are one kind if the lowest of them is this many times the recent level, and a gap separates it from the
#: highest of all other rises, no narrower than the spread of their own heights, or this wide (a ratio).
RARE_RATIO, RARE_CLEAR = 8.0, 5.0
#: Least gap (a ratio) by least number of spikes: the fewer there are, the likelier it is that the gap is chance.
RARE_GAPS = ((8, 1.6), (5, 2.5), (3, 5.0))
#: Ratio to the recent level from which a window is part of a rise, rare spike or not.
RARE_RISE = 2.0
#: Rare spikes are no more than this part of all windows.
RARE_SHARE = 0.05
#: Rare spikes recur if their distances are more even than chance makes them, with this probability, or if there are
#: more of them than a shared machine has of single slow windows in a day, with the second one; from this number on.
#: Spikes no more than so many windows apart are one event.
CHANCE_SPACING, CHANCE_NUMBER = 5e-4, 1e-3
ISOLATED_PER_DAY, RECURRENCES_LEAST, ONE_EVENT_WINDOWS = 12.0, 4, 12
#: Spikes were there from the start if the first came within this many times their longest distance. Those that came so
#: many times their usual distance before the others are none of them.
RARE_FROM_START, RARE_APART = 1.5, 10.0

# Isolated rises (isolated.py).

#: Windows that are this many times the recent level, and no longer than an excursion, are stated although no finding.
ISOLATED_RATIO = 5.0

# Time above healthy (online/time_above.py).

#: A window is high from this ratio to the healthy level on, and from this ratio to the highest windows of the reference
#: on: more than a swing of ±10 % by day makes of them; and from so many ticks of a coarse clock over the healthy level.
ABOVE_RATIO, ABOVE_MARGIN, ABOVE_TICKS = 1.5, 1.25, 1.5
#: Share of windows that may be high in a healthy run: pauses, restarts that no event reports. Excursions recur when the
#: windows beyond that share, without the longest excursion, are as many as this (7.5 min); they are over after so many
#: times their longest distance without one, or as a train of spikes is.
ABOVE_SHARE, ABOVE_WINDOWS, ABOVE_OVER_DISTANCES = 0.025, 45, 3
#: Excursions are part of a change that lasts when they are raised, if it began before this part of the time since the
#: first of them.
ABOVE_STATED = 0.8

# Load (causes, isolated.py, online/rare_spikes.py).

#: More load than before, as a factor.
LOAD_ROSE = 1.25

# Layers.

#: A difference below this part of the client's latency is rounding, and is not reported.
NEGLIGIBLE_PART = 0.05
#: A layer became slower when it takes this many times as long, and its rise is this part of the whole rise, and this
#: part of an operation's latency before.
LAYER_SLOWER, LAYER_PART, LAYER_NOTICEABLE = 1.5, 0.1, 0.3
#: The device layer also became slower when its requests did by at least this share of the operations' own factor, as
#: logarithms. Operations that wait for a drive queue above it, where nearly all of the rise may be.
LAYER_DEVICE_SHARE = 0.5
#: If the latency from when an operation began rose by this ratio, a slipping schedule is only a consequence.
SERVICE_ROSE = 1.25
