"""Drills: the label that their runs have, and its values."""

from collections.abc import Mapping
from enum import StrEnum

#: Label of a drill's runs; its value is the drill's variant.
DRILL_LABEL = "drill"


class VariantName(StrEnum):
    """Variant of a drill: mitigation of garbage collection (none, TRIM or spare space)."""

    AGING = "aging"
    TRIM = "trim"
    OVER_PROVISIONED = "over-provisioned"


def variant_of(labels: Mapping[str, str]) -> VariantName | None:
    """Variant of the drill that a run with these labels is of; None for another run, also one that was labelled
    `drill=…` by its user. The drive of a drill is deleted when the drill is over."""
    return next((name for name in VariantName if name == labels.get(DRILL_LABEL)), None)
