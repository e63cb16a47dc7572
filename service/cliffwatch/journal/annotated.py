"""Annotations of a run in its journal: one event per change, each with all annotations."""

from collections.abc import Iterable

from pydantic import ValidationError

from cliffwatch.journal.events import ANNOTATED, Event, EventType
from cliffwatch.model.annotations import Annotations


def annotated(annotations: Annotations, by: str, at: float, before: Annotations | None = None) -> Event:
    """Event that records all annotations of a run after a change, by whom it was made, and what it changed: names of
    fields, and `labels.NAME` for a label. `before`: annotations before the change; None for a run's first ones."""
    old = before or Annotations()
    names = {*old.labels, *annotations.labels}
    changed = [f"labels.{name}" for name in sorted(names) if old.labels.get(name) != annotations.labels.get(name)]
    changed += [name for name in ("note", "pinned") if getattr(old, name) != getattr(annotations, name)]
    return Event(at, EventType.NOTE, ANNOTATED, {**annotations.model_dump(mode="json"), "by": by, "changed": changed})


def annotations_of(event: Event) -> Annotations | None:
    """Annotations in an event; None for another kind of event, or where they cannot be read."""
    if event.type is not EventType.NOTE or event.name != ANNOTATED:
        return None
    try:
        return Annotations.model_validate({name: event.detail[name] for name in Annotations.model_fields})
    except (KeyError, ValidationError):
        return None


def annotations_in(events: Iterable[Event]) -> Annotations:
    """Newest annotations among events; empty ones where there was no change."""
    found = [annotations for event in events if (annotations := annotations_of(event)) is not None]
    return found[-1] if found else Annotations()
