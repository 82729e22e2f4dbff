"""What the operations answer: frozen dataclasses with the keys of the wire, in its order.

Times are aware datetimes, arrays are tuples, a value is the JSON as Python has it. The one key that Python keeps for itself,
`class`, is `class_name` here.
"""

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from kslate._time import parse_time

T = TypeVar("T")


@dataclass(frozen=True)
class Whoami:
    """Who the token is, and its roles by class."""

    identity: str
    admin: bool
    roles: dict[str, Any]


@dataclass(frozen=True)
class ClassSummary:
    class_name: str
    version: int
    description: str | None
    applied_by: str
    applied_at: datetime


@dataclass(frozen=True)
class ClassPage:
    classes: tuple[ClassSummary, ...]
    next: str | None


@dataclass(frozen=True)
class ClassDefinition:
    """`source` is the YAML as it was written, `definition` the same with every default filled in."""

    class_name: str
    version: int
    description: str | None
    definition: dict[str, Any]
    source: str
    applied_by: str
    applied_at: datetime


@dataclass(frozen=True)
class ClassApplied:
    class_name: str
    version: int
    changed: bool
    dry_run: bool
    changes: tuple[str, ...]


@dataclass(frozen=True)
class CreateResult:
    record: str
    record_version: int
    created: bool
    created_by: str
    created_at: datetime


@dataclass(frozen=True)
class ClaimState:
    """The claim of a task field, as others see it: `state` is open, claimed or completed; a lapsed lease is not `live`."""

    state: str
    live: bool
    owner: str | None
    role: str | None
    epoch: int
    claimed_at: datetime | None
    expires_at: datetime | None


@dataclass(frozen=True)
class FieldState:
    """One field of a record. Never written: version 0, value None. The value of an append field is a list of its newest
    20 entries, oldest first, each a dict with `seq`, `value`, `author`, `role`, `evidence`, `record_version`, `added_at`."""

    field: str
    mode: str
    value: Any
    version: int
    author: str | None
    role: str | None
    evidence: str | None
    record_version: int | None
    changed_at: datetime | None
    claim: ClaimState | None


@dataclass(frozen=True)
class Record:
    """A record with the fields that were asked for and may be read. `record["status"]` is one of them."""

    record: str
    record_version: int
    created_by: str
    created_at: datetime
    fields: tuple[FieldState, ...]

    def __getitem__(self, field: str) -> FieldState:
        for state in self.fields:
            if state.field == field:
                return state
        raise KeyError(field)


@dataclass(frozen=True)
class RecordPage:
    records: tuple[Record, ...]
    next: str | None


@dataclass(frozen=True)
class WriteResult:
    record: str
    field: str
    version: int
    record_version: int
    author: str
    role: str | None
    evidence: str | None
    changed_at: datetime


@dataclass(frozen=True)
class WrittenChange:
    field: str
    version: int
    record_version: int
    role: str | None


@dataclass(frozen=True)
class WriteManyResult:
    record: str
    record_version: int
    changed_at: datetime
    changes: tuple[WrittenChange, ...]


@dataclass(frozen=True)
class AppendResult:
    """`version` is the new entry's `seq`."""

    record: str
    field: str
    version: int
    record_version: int
    author: str
    role: str | None
    evidence: str | None
    added_at: datetime


@dataclass(frozen=True)
class Entry:
    seq: int
    value: Any
    author: str
    role: str | None
    evidence: str | None
    record_version: int
    added_at: datetime


@dataclass(frozen=True)
class EntryPage:
    record: str
    field: str
    entries: tuple[Entry, ...]
    next: int | None


@dataclass(frozen=True)
class Grant:
    """The answer to a claim, inside a Claim."""

    record: str
    field: str
    owner: str
    role: str | None
    claim_id: str
    epoch: int
    claimed_at: datetime
    expires_at: datetime
    lease_seconds: int
    took_over_from: str | None
    record_version: int


@dataclass(frozen=True)
class RenewResult:
    record: str
    field: str
    owner: str
    claim_id: str
    epoch: int
    expires_at: datetime
    lease_seconds: int


@dataclass(frozen=True)
class ReleaseResult:
    record: str
    field: str
    epoch: int
    record_version: int
    released_at: datetime


@dataclass(frozen=True)
class CompleteResult:
    record: str
    field: str
    epoch: int
    version: int
    record_version: int
    completed_at: datetime


@dataclass(frozen=True)
class ReopenResult:
    record: str
    field: str
    version: int
    record_version: int
    reopened_at: datetime


@dataclass(frozen=True)
class ForceReleaseResult:
    record: str
    field: str
    released_from: str | None
    epoch: int
    record_version: int
    released_at: datetime


@dataclass(frozen=True)
class CheckpointSaved:
    record: str
    role: str
    checkpoint_id: int
    record_version: int


@dataclass(frozen=True)
class ChangedField:
    field: str
    version: int
    author: str | None
    evidence: str | None


@dataclass(frozen=True)
class Checkpoint:
    """The latest checkpoint of a role, and what has changed since. None saved yet: `document` is None, `record_version` 0."""

    record: str
    role: str
    document: dict[str, Any] | None
    record_version: int
    changed_fields: tuple[ChangedField, ...]


@dataclass(frozen=True)
class CheckpointSummary:
    checkpoint_id: int
    role: str
    record_version: int
    author: str
    saved_at: datetime
    bytes: int


@dataclass(frozen=True)
class CheckpointPage:
    record: str
    checkpoints: tuple[CheckpointSummary, ...]
    next: int | None


@dataclass(frozen=True)
class HistoryRow:
    """One accepted change. `version` and `value` are None for claims, `epoch` and `took_over_from` for all but claims."""

    record_version: int
    op: str
    field: str | None
    version: int | None
    value: Any
    author: str
    role: str | None
    evidence: str | None
    changed_at: datetime
    epoch: int | None
    took_over_from: str | None
    reason: str | None


@dataclass(frozen=True)
class HistoryPage:
    record: str
    history: tuple[HistoryRow, ...]
    next: int | None


@dataclass(frozen=True)
class PointsTo:
    """What an evidence such as `hypotheses@2` stands for."""

    field: str
    version: int
    value: Any
    author: str | None
    changed_at: datetime


@dataclass(frozen=True)
class BlameRow:
    """Who wrote this, when, and why: a field, one key of an object value, or one entry of an append field."""

    field: str
    key: str | None
    seq: int | None
    version: int
    author: str | None
    role: str | None
    evidence: str | None
    points_to: PointsTo | None
    record_version: int
    changed_at: datetime


@dataclass(frozen=True)
class Blame:
    record: str
    blame: tuple[BlameRow, ...]


def decode(cls: type[T], body: Any) -> T:
    """The JSON object as a `cls`. Unknown keys are ignored; raises ValueError where one is missing or of another shape."""
    if not isinstance(body, dict):
        raise ValueError(f"not a JSON object: {body!r:.80}")
    try:
        return cls(**{name: _convert(hint, body[_wire(name)]) for name, hint in _hints(cls)})  # type: ignore[arg-type]
    except KeyError as missing:
        raise ValueError(f"the key {missing} is missing") from None


def _wire(name: str) -> str:
    return "class" if name == "class_name" else name


@cache
def _hints(cls: type[Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.type) for field in dataclasses.fields(cls))


def _convert(hint: Any, value: Any) -> Any:
    if hint is Any:
        return value
    if get_origin(hint) in (Union, UnionType):
        if value is None:
            return None
        (hint,) = (arm for arm in get_args(hint) if arm is not NoneType)
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ValueError(f"not an array: {value!r:.80}")
        return tuple(_convert(get_args(hint)[0], item) for item in value)
    if dataclasses.is_dataclass(hint):
        return decode(hint, value)  # type: ignore[arg-type]
    expected = str if hint is datetime else get_origin(hint) or hint
    if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
        raise ValueError(f"not {expected.__name__}: {value!r:.80}")
    return parse_time(value) if hint is datetime else value
