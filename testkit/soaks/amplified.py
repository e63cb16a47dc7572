"""Soaks whose drive reports write amplification: it rises with garbage collection, and not with what looks like it.

The series is laid over a soak of another generator. Write amplification wanders, creeps up as the drive fills, is
measured with noise, and is a minute old: a drive counts in large units, and is asked now and then.
"""

from dataclasses import replace

import numpy as np
from testkit.soaks.noise import autoregressive, ramp
from testkit.soaks.soak import Soak

COLUMN = "write_amplification"
HOUR = 360
#: Windows by which the series is late.
LATE = 6


def amplified(soak: Soak) -> Soak:
    """The soak with the column `write_amplification`, which rises from the onset of each of its degradations on."""
    random = np.random.default_rng((soak.seed, sum(soak.generator.encode()), 5))
    count = len(soak.times)
    level = np.full(count, np.log(random.uniform(1.02, 2.5)))
    level += autoregressive(random, count, random.uniform(0.005, 0.03), random.uniform(30, 360))
    level += np.log(random.uniform(1.0, 1.4)) * ramp(count, 0, random.uniform(0.5, 1) * count)
    for truth in soak.truths:
        onset = int(np.searchsorted(soak.times, truth.onset)) + LATE
        length = 2 * HOUR if truth.name == "drift" else random.choice([1, 3])
        level += np.log(random.uniform(1.2, 2.5)) * ramp(count, onset, length)
    level += random.normal(0, random.uniform(0.005, 0.04), count)
    return replace(soak, columns=soak.columns | {COLUMN: np.maximum(1.0, np.exp(level))})
