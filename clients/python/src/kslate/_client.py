"""The client: one method per operation of the manual, each with the manual's name."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, TypeVar

from kslate import _json
from kslate import _results as results
from kslate._claim import Claim
from kslate._clock import Stop
from kslate._errors import UnexpectedAnswer
from kslate._request import Call, Change, change_body, given, names_of, new_key, path_of, query_of, record_path
from kslate._transport import Reply, Transport

log = logging.getLogger("kslate")

T = TypeVar("T")


class Client:
    """A kslate server, as the caller that `token` stands for.

    `server` is KSLATE_SERVER, else http://127.0.0.1:8080, and `token` KSLATE_APIKEY, where they are not given; both are read at
    the first request, and nothing is opened before. `timeout` bounds one try (seconds), `retry_for` the tries of one call:
    connection loss, BUSY, UNAVAILABLE and TIMEOUT are sent again with growing, random pauses, changes under an idempotency key
    that the client makes; 0 sends everything once. `parse_float=Decimal` keeps every digit of numbers that are no integers.

    Thread-safe; close it, or use it as a context manager. Records are named `class/key`. Errors: see KslateError.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retry_for: float = 30.0,
        parse_float: Callable[[str], Any] = float,
    ) -> None:
        self._transport = Transport(server, token, timeout=timeout, retry_for=retry_for, parse_float=parse_float)
        self._stop: Stop | None = None
        self._retry_for: float | None = None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._transport.server!r})"

    def close(self) -> None:
        """Close the connections. A call after this is a RuntimeError."""
        self._transport.close()

    # Who am I, and which classes are there

    def whoami(self) -> results.Whoami:
        """Who the token is, and which roles it holds."""
        return self._read(results.Whoami, "/v1/whoami")

    def classes(self) -> results.ClassPage:
        """All classes, in the order of their names."""
        return self._read(results.ClassPage, "/v1/classes")

    def class_get(self, name: str, version: int | None = None) -> results.ClassDefinition:
        """A class as it is now, or as it was at `version`."""
        return self._read(results.ClassDefinition, path_of("classes", name), version=version)

    def class_apply(
        self, name: str, source: str | Mapping[str, Any], dry_run: bool = False, *, idempotency_key: str | None = None
    ) -> results.ClassApplied:
        """Apply a definition (YAML, or a mapping); an admin's token only. `dry_run` tells what would change."""
        text = source if isinstance(source, str) else None
        body = None if isinstance(source, str) else source
        key = idempotency_key or new_key()
        call = Call("PUT", path_of("classes", name), query_of(dry_run=dry_run or None), body, text, key)
        return self._answer(results.ClassApplied, self._send(call))

    # Records and their fields

    def create(
        self,
        record: str,
        fields: Mapping[str, Any] | None = None,
        evidence: str | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> results.CreateResult:
        """Create the record. One that exists: answered with `created` False, or AlreadyExists where `fields` were given."""
        body = given(fields=fields, evidence=evidence)
        return self._change(results.CreateResult, "PUT", record_path(record), body, idempotency_key)

    def get(self, record: str, fields: Iterable[str] | None = None) -> results.Record:
        """The record with the fields that you may read, or only those named."""
        return self._read(results.Record, record_path(record), fields=names_of(fields))

    def list(
        self,
        class_name: str,
        filter: Mapping[str, Any] | None = None,
        fields: Iterable[str] | None = None,
        page_size: int | None = None,
        after: str | None = None,
    ) -> results.RecordPage:
        """One page of records in the order of their keys; `after` is the `next` of the page before. `filter` is field → value
        or list of values. Records come with the `fields` named, else with none."""
        found = None if filter is None else _json.encode(filter).decode("utf-8", "replace")
        return self._read(
            results.RecordPage,
            path_of("records", class_name),
            filter=found,
            fields=names_of(fields),
            page_size=page_size,
            after=after,
        )

    def list_all(
        self,
        class_name: str,
        filter: Mapping[str, Any] | None = None,
        fields: Iterable[str] | None = None,
        page_size: int | None = None,
    ) -> Iterator[results.Record]:
        """The records of all pages, each page asked for when it is needed."""
        names = None if fields is None else tuple(fields)
        after: str | None = None
        while True:
            page = self.list(class_name, filter, names, page_size, after)
            yield from page.records
            if (after := page.next) is None:
                return

    def write(
        self,
        record: str,
        field: str,
        value: Any,
        expected_version: int | None = None,
        evidence: str | None = None,
        claim_id: str | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> results.WriteResult:
        """Write a cas field (`expected_version` is the version that the value was decided on, 0 for never written) or an lww
        field. VersionConflict carries what stands there."""
        body = {"value": value, **given(expected_version=expected_version, evidence=evidence, claim_id=claim_id)}
        return self._change(results.WriteResult, "PUT", record_path(record, "fields", field), body, idempotency_key)

    def write_many(
        self,
        record: str,
        changes: Iterable[Change | Mapping[str, Any]],
        claim_id: str | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> results.WriteManyResult:
        """Write several cas and lww fields, all or none: `Change`s, or mappings with the same keys."""
        body = {"changes": [change_body(change) for change in changes], **given(claim_id=claim_id)}
        return self._change(results.WriteManyResult, "PATCH", record_path(record), body, idempotency_key)

    def append(
        self,
        record: str,
        field: str,
        value: Any,
        evidence: str | None = None,
        claim_id: str | None = None,
        expected_version: int | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> results.AppendResult:
        """Add an entry to an append field."""
        body = {"value": value, **given(evidence=evidence, claim_id=claim_id, expected_version=expected_version)}
        path = record_path(record, "fields", field, "entries")
        return self._change(results.AppendResult, "POST", path, body, idempotency_key)

    def entries(
        self,
        record: str,
        field: str,
        after: int | None = None,
        page_size: int | None = None,
        newest_first: bool = False,
    ) -> results.EntryPage:
        """One page of an append field's entries."""
        return self._read(
            results.EntryPage,
            record_path(record, "fields", field, "entries"),
            after=after,
            page_size=page_size,
            newest_first=newest_first or None,
        )

    def entries_all(
        self, record: str, field: str, page_size: int | None = None, newest_first: bool = False
    ) -> Iterator[results.Entry]:
        """The entries of all pages."""
        after: int | None = None
        while True:
            page = self.entries(record, field, after, page_size, newest_first)
            yield from page.entries
            if (after := page.next) is None:
                return

    # Claims

    def claim(
        self,
        record: str,
        field: str,
        lease_seconds: int | None = None,
        reattach: bool = False,
        *,
        idempotency_key: str | None = None,
    ) -> Claim:
        """Claim a task, or raise Held or Completed. `reattach` takes back your own live claim after a restart. The Claim is a
        plain value until it is used as a context manager: then it renews itself."""
        path = record_path(record, "fields", field, "claim")
        body = given(lease_seconds=lease_seconds, reattach=reattach or None)
        claim = self._claim(path, body, idempotency_key)
        if claim is None:
            raise UnexpectedAnswer(f"the claim of {field} on {record} was answered with no record")
        return claim

    def claim_next(
        self,
        class_name: str,
        field: str,
        lease_seconds: int | None = None,
        filter: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Claim | None:
        """Claim what has waited longest: the longest lapsed lease, else the task queued first. None: nothing is free now."""
        body = {"field": field, **given(lease_seconds=lease_seconds, filter=filter)}
        return self._claim(path_of("classes", class_name, "claim"), body, idempotency_key)

    def renew(self, record: str, field: str, claim_id: str, lease_seconds: int | None = None) -> results.RenewResult:
        """Move the lease's end to now + `lease_seconds` (default: as before)."""
        return self._renew(record, field, claim_id, lease_seconds)[0]

    def release(
        self, record: str, field: str, claim_id: str, reason: str | None = None, *, idempotency_key: str | None = None
    ) -> results.ReleaseResult:
        """Give the task back; it can be claimed at once."""
        path = record_path(record, "fields", field, "release")
        body = {"claim_id": claim_id, **given(reason=reason)}
        return self._change(results.ReleaseResult, "POST", path, body, idempotency_key)

    def complete(
        self,
        record: str,
        field: str,
        claim_id: str,
        value: Any = None,
        evidence: str | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> results.CompleteResult:
        """End the task with `value` as its result."""
        path = record_path(record, "fields", field, "complete")
        body = {"claim_id": claim_id, "value": value, **given(evidence=evidence)}
        return self._change(results.CompleteResult, "POST", path, body, idempotency_key)

    def reopen(
        self, record: str, field: str, reason: str | None = None, *, idempotency_key: str | None = None
    ) -> results.ReopenResult:
        """Open a completed task again; its result becomes None."""
        path = record_path(record, "fields", field, "reopen")
        return self._change(results.ReopenResult, "POST", path, given(reason=reason), idempotency_key)

    def force_release(
        self, record: str, field: str, expected_epoch: int, reason: str, *, idempotency_key: str | None = None
    ) -> results.ForceReleaseResult:
        """Take the task from its holder; for the roles that the field's `override` names."""
        path = record_path(record, "fields", field, "force-release")
        body = {"expected_epoch": expected_epoch, "reason": reason}
        return self._change(results.ForceReleaseResult, "POST", path, body, idempotency_key)

    # Checkpoints, history, blame

    def checkpoint_save(
        self,
        record: str,
        document: Mapping[str, Any],
        role: str | None = None,
        seen_version: int | None = None,
        claim_id: str | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> results.CheckpointSaved:
        """Save your role's checkpoint. `seen_version` is the record version that you last read: changes after it will be in
        `changed_fields`. A caller with several roles names the `role`."""
        path = record_path(record, "checkpoint")
        body = {"document": document, **given(seen_version=seen_version, claim_id=claim_id)}
        return self._change(results.CheckpointSaved, "PUT", path, body, idempotency_key, query_of(role=role))

    def checkpoint_load(self, record: str, role: str | None = None, checkpoint_id: int | None = None) -> results.Checkpoint:
        """The latest checkpoint of the role (or the one of that number), and which fields have changed since."""
        return self._read(results.Checkpoint, record_path(record, "checkpoint"), role=role, checkpoint_id=checkpoint_id)

    def checkpoint_list(
        self, record: str, role: str | None = None, after: int | None = None, page_size: int | None = None
    ) -> results.CheckpointPage:
        """One page of checkpoints without their documents, newest first."""
        return self._read(results.CheckpointPage, record_path(record, "checkpoints"), role=role, after=after, page_size=page_size)

    def history(
        self,
        record: str,
        field: str | None = None,
        after: int | None = None,
        page_size: int | None = None,
        newest_first: bool = False,
        with_values: bool = True,
    ) -> results.HistoryPage:
        """One page of the record's accepted changes, or of one field's."""
        return self._read(
            results.HistoryPage,
            record_path(record, "history"),
            field=field,
            after=after,
            page_size=page_size,
            newest_first=newest_first or None,
            with_values=None if with_values else False,
        )

    def history_all(
        self,
        record: str,
        field: str | None = None,
        page_size: int | None = None,
        newest_first: bool = False,
        with_values: bool = True,
    ) -> Iterator[results.HistoryRow]:
        """The history of all pages."""
        after: int | None = None
        while True:
            page = self.history(record, field, after, page_size, newest_first, with_values)
            yield from page.history
            if (after := page.next) is None:
                return

    def blame(self, record: str, field: str | None = None, after: int | None = None) -> results.Blame:
        """Who wrote what stands there, when, and on what evidence. An append field shows its newest 100 entries; `field` and
        `after` the others."""
        return self._read(results.Blame, record_path(record, "blame"), field=field, after=after)

    # What the methods share

    def _twin(self, *, stop: Stop | None = None, retry_for: float | None = None) -> Client:
        """This client on the same connections, but `stop` ends its waiting before a request is sent again, or it gives up
        after `retry_for` seconds."""
        twin = copy.copy(self)
        twin._stop = stop or self._stop
        twin._retry_for = self._retry_for if retry_for is None else retry_for
        return twin

    def _send(self, call: Call, **how: Any) -> Reply:
        return self._transport.send(call, stop=self._stop, **{"retry_for": self._retry_for, **how})

    def _read(self, cls: type[T], path: str, **query: Any) -> T:
        return self._answer(cls, self._send(Call("GET", path, query_of(**query))))

    def _change(
        self,
        cls: type[T],
        method: str,
        path: str,
        body: Mapping[str, Any],
        key: str | None,
        query: Mapping[str, str] | None = None,
    ) -> T:
        return self._answer(cls, self._send(Call(method, path, query, body, idempotency_key=key or new_key())))

    def _claim(self, path: str, body: Mapping[str, Any], key: str | None) -> Claim | None:
        claim = self._claim_once(path, body, key or new_key())
        if claim is not None and key is not None:
            # The answer may be that of the first request, of long ago: whether the lease is still there is the server's to say.
            claim.renew()
        elif claim is not None and not claim.live:
            log.warning("%s was granted, but the answer came after its lease had run out; claiming again", claim)
            claim = self._claim_once(path, body, new_key())
        return claim

    def _claim_once(self, path: str, body: Mapping[str, Any], key: str) -> Claim | None:
        reply = self._send(Call("POST", path, body=body, idempotency_key=key))
        if reply.body.get("record", "") is None:
            return None
        return Claim(self, self._answer(results.Grant, reply), reply.sent_at)

    def _renew(
        self, record: str, field: str, claim_id: str, lease_seconds: int | None, **how: Any
    ) -> tuple[results.RenewResult, float]:
        """The answer, and when it was asked for: from then on the lease is sure."""
        path = record_path(record, "fields", field, "renew")
        body = {"claim_id": claim_id, **given(lease_seconds=lease_seconds)}
        reply = self._send(Call("POST", path, body=body), **how)
        return self._answer(results.RenewResult, reply), reply.sent_at

    def _answer(self, cls: type[T], reply: Reply) -> T:
        try:
            return results.decode(cls, reply.body)
        except ValueError as fault:
            server = self._transport.server
            raise UnexpectedAnswer(f"{server} answered with JSON that is no {cls.__name__} of kslate: {fault}") from fault
