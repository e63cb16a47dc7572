"""Causes of degradation: a table of causes, each with the evidence for and against it, computed from measurements."""

from cliffwatch.analysis.causes.diagnosis import Diagnosis, Suspect, diagnose, explain
from cliffwatch.analysis.causes.evidence import Evidence
from cliffwatch.analysis.causes.measures import Change, Measures, NearbyEvent
from cliffwatch.analysis.causes.rules import CAUSES, Cause, CauseRow

__all__ = [
    "CAUSES",
    "Cause",
    "CauseRow",
    "Change",
    "Diagnosis",
    "Evidence",
    "Measures",
    "NearbyEvent",
    "Suspect",
    "diagnose",
    "explain",
]
