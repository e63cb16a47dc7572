"""The thresholds that detection while the run goes on (`online`) and over the whole of it (`offline`) have in common,
and those that say the same of different detectors.

What belongs to one detector alone stands in it. Ratios are of a level to the one before.
"""

#: A rise of this size and more is a cliff, which the fast detector finds within minutes; a smaller one takes the longer
#: spans of the slow detectors, and is a step.
CLIFF_RATIO = 1.5
#: A daily swing of ±10 % is healthy: its highest is 1.1 / 0.9 = 1.222 times its lowest. Drift is more than that by 1 %.
DRIFT_RATIO = 1.235
#: By how much a span has to exceed the hours before it to be a step, by span in blocks, while nobody knows what comes
#: later: what is short may be an accident and has to be larger.
STEP_RATIOS = {8: 1.15, 12: 1.13, 20: 1.12, 30: 1.11, 60: 1.11}
#: The same of a segment of a whole run, whose length is known, and against the lowest level before it too.
SEGMENT_RATIO = 1.12
#: A step that no device shows, since none is measured, is at least so large.
STEP_ALONE_RATIO = 1.15
#: A train of spikes is over after so many windows without one (a notice alone hides 120), or after so many times the
#: distance that its spikes had, whichever is later.
TRAIN_OVER_WINDOWS, TRAIN_OVER_DISTANCES = 180, 10
#: How many times the baseline most of the last windows are at least, where a device slowed down too: so far beyond it
#: that no noise of the run has to be asked.
CORROBORATED_RATIO = 10.0
#: What was raised and lasted so long (30 min), or to the end, and is so large and so sure, is a finding although the
#: whole run shows no change there.
LASTED_WINDOWS, LASTED_RATIO, LASTED_CONFIDENCE = 180, 3.0, 0.9
