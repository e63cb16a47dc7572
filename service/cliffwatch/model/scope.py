"""Scopes of API tokens."""

from enum import IntEnum


class Scope(IntEnum):
    """Scope of an API token; each scope includes the ones before it."""

    READ = 1
    OPERATE = 2
    ADMIN = 3

    @property
    def label(self) -> str:
        return self.name.lower()

    @classmethod
    def of(cls, label: str) -> "Scope":
        return cls[label.upper()]
