"""What a decision may ask for."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Write:
    """Write a cas or lww field, if it is still at the version that the decision was made on."""

    field: str
    value: Any
    evidence: str | None = None


@dataclass(frozen=True)
class Append:
    """Add an entry to an append field."""

    field: str
    value: Any
    evidence: str | None = None


@dataclass(frozen=True)
class Complete:
    """End the task with `value` as its result; the last action of a decision."""

    value: Any = None
    evidence: str | None = None


@dataclass(frozen=True)
class Release:
    """Give the task back for somebody else, or for later; the last action of a decision."""

    reason: str | None = None


Action = Write | Append | Complete | Release
