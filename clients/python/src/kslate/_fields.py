"""The fields as a decision sees them, and what of the record an agent has seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from kslate._results import AppendResult, ChangedField, Checkpoint, Entry, FieldState, Record, WriteResult
from kslate._time import printed

if TYPE_CHECKING:
    from kslate._claim import Claim

_ENTRIES_SHOWN = 20


class Fields(Mapping[str, Any]):
    """The values of a record's fields, as they were read at once: `fields["status"]`, None where never written.

    `version(name)`, `author(name)` and `evidence(name)` tell of the last write. `record` is the record's name, `record_version`
    the version that was read, `claim` the Claim that is held on it. `checkpoint` is the last document saved for the role, None
    where there is none. `changed_fields` are the fields that have changed since: since the checkpoint in the first cycle of a
    claim, since the cycle before in the others, then without the agent's own changes.
    """

    def __init__(
        self,
        record: Record,
        claim: Claim,
        checkpoint: dict[str, Any] | None = None,
        changed_fields: tuple[ChangedField, ...] = (),
    ) -> None:
        self.record = record.record
        self.record_version = record.record_version
        self.claim = claim
        self.checkpoint = checkpoint
        self.changed_fields = changed_fields
        self._states = {state.field: state for state in record.fields}

    def __getitem__(self, name: str) -> Any:
        return self._states[name].value

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def __repr__(self) -> str:
        return f"Fields({self.record!r}, record_version={self.record_version}, {dict(self)!r})"

    def version(self, name: str) -> int:
        """How many changes the field has seen; 0: never written."""
        return self._states[name].version

    def author(self, name: str) -> str | None:
        return self._states[name].author

    def evidence(self, name: str) -> str | None:
        return self._states[name].evidence


class Seen:
    """What of a record the agent has seen: for `changed_fields`, and for the `seen_version` of its checkpoints.

    Both move on over the agent's own changes only while those follow what was seen without a gap: in a gap stands somebody
    else's change.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.document = checkpoint.document
        self.record_version = checkpoint.record_version
        self._checkpoint_version = checkpoint.record_version if checkpoint.document is not None else -1
        self._versions: dict[str, int] = {}
        self._now: Record | None = None
        self._read: Record | None = None
        self._own: list[WriteResult | AppendResult] = []

    def read(self, record: Record, claim: Claim) -> Fields:
        """The fields for a new decision; what the last one saw is seen only if it was `done`."""
        self._follow()
        self._now = self._read = record
        self.record_version = record.record_version
        for state in record.fields:
            self._versions.setdefault(state.field, self._known(state))
        changed = [state for state in record.fields if state.mode != "task" and state.version > self._versions[state.field]]
        changed.sort(key=lambda state: state.record_version or 0)
        told = tuple(ChangedField(state.field, state.version, state.author, state.evidence) for state in changed)
        return Fields(record, claim, self.document, told)

    def own(self, change: WriteResult | AppendResult, value: Any) -> None:
        """The agent itself has changed a field."""
        self._own.append(change)
        if change.record_version == self.record_version + 1:
            self.record_version = change.record_version
        if self._now is not None:
            states = tuple(_after(state, change, value) if state.field == change.field else state for state in self._now.fields)
            self._now = replace(self._now, record_version=self.record_version, fields=states)

    def now(self, fields: Fields) -> Fields:
        """The fields that were read, with the agent's own changes since."""
        return Fields(self._now, fields.claim, fields.checkpoint, fields.changed_fields) if self._now else fields

    def version(self, field: str) -> int | None:
        """The version that the agent's next write expects; None for a field that it may not read."""
        states = self._now.fields if self._now else ()
        return next((state.version for state in states if state.field == field), None)

    def done(self) -> None:
        """The cycle has succeeded: all that was read is seen."""
        if self._read is not None:
            self._versions.update({state.field: state.version for state in self._read.fields})
        self._follow()

    def _follow(self) -> None:
        for own in self._own:
            if self._versions.get(own.field) == own.version - 1:
                self._versions[own.field] = own.version
        self._own = []

    def _known(self, state: FieldState) -> int:
        """The version of a field that the checkpoint knew, as far as that can be told: one that it did not know is -1."""
        if state.record_version is None or state.record_version <= self._checkpoint_version:
            return state.version
        return -1


def _after(state: FieldState, change: WriteResult | AppendResult, value: Any) -> FieldState:
    changed_at = change.added_at if isinstance(change, AppendResult) else change.changed_at
    if isinstance(change, AppendResult):
        entry = Entry(
            seq=change.version,
            value=value,
            author=change.author,
            role=change.role,
            evidence=change.evidence,
            record_version=change.record_version,
            added_at=change.added_at,
        )
        # As the server shows it: the entry as JSON would come.
        value = [*state.value, {**asdict(entry), "added_at": printed(entry.added_at)}][-_ENTRIES_SHOWN:]
    return replace(
        state,
        value=value,
        version=change.version,
        author=change.author,
        role=change.role,
        evidence=change.evidence,
        record_version=change.record_version,
        changed_at=changed_at,
    )
