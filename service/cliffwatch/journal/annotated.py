"""Annotations of a run in its journal: an event for each change, which holds all of them."""

from collections.abc import Iterable

from pydantic import ValidationError

from cliffwatch.journal.events import ANNOTATED, Event, EventType
from cliffwatch.model.annotations import Annotations


def annotated(annotations: Annotations, by: str, at: float) -> Event:
    """The event of a change."""
    return Event(at, EventType.NOTE, ANNOTATED, {**annotations.model_dump(mode="json"), "by": by})


def annotations_of(event: Event) -> Annotations | None:
    """What the event holds; None where it is another event, or holds none that can be read."""
    if event.type is not EventType.NOTE or event.name != ANNOTATED:
        return None
    try:
        return Annotations.model_validate({name: event.detail[name] for name in Annotations.model_fields})
    except (KeyError, ValidationError):
        return None


def annotations_in(events: Iterable[Event]) -> Annotations:
    """The newest; none where there was no change."""
    found = [annotations for event in events if (annotations := annotations_of(event)) is not None]
    return found[-1] if found else Annotations()
