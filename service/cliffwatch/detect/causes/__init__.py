"""Why a run degraded: a table of causes, each with the evidence for and against it, computed from what was measured."""

from cliffwatch.detect.causes.diagnosis import Diagnosis, Suspect, diagnose, explain
from cliffwatch.detect.causes.measures import Change, Happening, Measures
from cliffwatch.detect.causes.table import CAUSES, Cause, CauseRow
from cliffwatch.detect.causes.weigh import Evidence

__all__ = [
    "CAUSES",
    "Cause",
    "CauseRow",
    "Change",
    "Diagnosis",
    "Evidence",
    "Happening",
    "Measures",
    "Suspect",
    "diagnose",
    "explain",
]
