"""A claim: what was granted, whether it can still be relied on, and the thread that keeps it."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from kslate import _results as results
from kslate._clock import Clock
from kslate._errors import KslateError, LeaseLost, Transient
from kslate._request import Change

if TYPE_CHECKING:
    from kslate._client import Client

log = logging.getLogger("kslate")

T = TypeVar("T")

_SHORTEST_RENEWAL, _LONGEST_RENEWAL = 0.5, 10.0  # seconds that one renewal may take: a hung one must not eat the lease


class Claim:
    """A granted claim. It has the keys of the answer as attributes, and is a plain value until it is kept alive.

        with client.claim(R, "remediation") as claim:
            claim.append("actions_taken", "cordoned node-7")
            claim.complete("done")

    The block renews the lease in a background thread at a third of it. Leaving the block ends the thread and, unless the claim
    was completed, released or lost, gives the task back, after an exception with its type as the reason.

    The claim's end is reckoned by this machine's clock from the moment the claim, or the last confirmed renewal, was *sent*: so
    it is never later than the server's. When it passes, or the server says LEASE_LOST, the claim is lost for good: `lost` is
    set, `on_lost` is called once, and whatever is done through this object raises LeaseLost without being sent.
    """

    def __init__(self, client: Client, grant: results.Grant, sent_at: float) -> None:
        self.record = grant.record
        self.field = grant.field
        self.owner = grant.owner
        self.role = grant.role
        self.claim_id = grant.claim_id
        self.epoch = grant.epoch
        self.claimed_at = grant.claimed_at
        self.expires_at = grant.expires_at
        self.lease_seconds = grant.lease_seconds
        self.took_over_from = grant.took_over_from
        self.record_version = grant.record_version
        self.on_lost: Callable[[LeaseLost], object] | None = None
        self.lost: threading.Event = _Lost(self)
        self._clock: Clock = client._transport.clock
        self._client = client._twin(stop=self.lost)
        self._lock = threading.Lock()
        self._renew_at = sent_at + grant.lease_seconds / 3
        self._deadline = sent_at + grant.lease_seconds
        self._why: LeaseLost | None = None
        self._ending = False
        self._ended = False
        self._keeper: threading.Thread | None = None
        self._gone = False
        self._wake = threading.Event()

    def __repr__(self) -> str:
        return f"Claim({self.record!r}, {self.field!r}, epoch={self.epoch}, owner={self.owner!r}, live={self.live})"

    # Can it be relied on?

    @property
    def live(self) -> bool:
        """Whether work under it may go on: neither lost nor ended."""
        return not self._ended and not self.lost.is_set()

    @property
    def seconds_left(self) -> float:
        """Until the lease runs out, unless it is renewed; 0 when it is lost or ended."""
        return max(self._deadline - self._clock.now(), 0.0) if self.live else 0.0

    def ensure_live(self) -> None:
        """Raise LeaseLost if the claim is lost: a word before anything that cannot be taken back."""
        if self.lost.is_set() and self._why is not None:
            raise LeaseLost(self._why.message, status=self._why.status, request_id=self._why.request_id, body=self._why.body)

    # Keeping it

    def keep_alive(self, on_lost: Callable[[LeaseLost], object] | None = None) -> Claim:
        """Renew in a background thread until the claim is completed, released, lost or `let_go`. `on_lost` is called there."""
        if on_lost is not None:
            self.on_lost = on_lost
        with self._lock:
            if self._keeper is None and self._why is None and not self._ended:
                self._gone = False
                name = f"kslate-renew-{self.record}"
                self._keeper = threading.Thread(target=self._keep, name=name, daemon=True)
                self._keeper.start()
        return self

    def let_go(self) -> None:
        """End the background thread, and wait for it. The lease stays, and runs out when it does."""
        self._gone = True
        self._wake.set()
        keeper = self._keeper
        if keeper is not None and keeper is not threading.current_thread():
            keeper.join()
            self._keeper = None

    def __enter__(self) -> Claim:
        return self.keep_alive()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if self.live:
                self.release(None if kind is None else f"{kind.__name__} in the work")
        except KslateError as refused:
            # Not raised: it would hide the work's own outcome, and the lease runs out by itself.
            log.warning("%s %s could not be released: %s", self.record, self.field, refused)
        finally:
            self.let_go()

    # What is done under it

    def renew(self, lease_seconds: int | None = None) -> results.RenewResult:
        """Renew now; `lease_seconds` is kept for the renewals to come."""
        self.ensure_live()
        try:
            return self._renew(lease_seconds)
        except LeaseLost as lost:
            self._lose(lost)
            raise
        finally:
            self._wake.set()

    def write(
        self,
        field: str,
        value: Any,
        expected_version: int | None = None,
        evidence: str | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> results.WriteResult:
        return self._under(
            lambda: self._client.write(
                self.record,
                field,
                value,
                expected_version,
                evidence,
                self.claim_id,
                idempotency_key=idempotency_key,
            )
        )

    def write_many(
        self, changes: Iterable[Change | Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> results.WriteManyResult:
        return self._under(lambda: self._client.write_many(self.record, changes, self.claim_id, idempotency_key=idempotency_key))

    def append(
        self,
        field: str,
        value: Any,
        evidence: str | None = None,
        expected_version: int | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> results.AppendResult:
        return self._under(
            lambda: self._client.append(
                self.record,
                field,
                value,
                evidence,
                self.claim_id,
                expected_version,
                idempotency_key=idempotency_key,
            )
        )

    def checkpoint_save(
        self,
        document: Mapping[str, Any],
        role: str | None = None,
        seen_version: int | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> results.CheckpointSaved:
        """Save the checkpoint of the role that holds the claim, if no other is named."""
        return self._under(
            lambda: self._client.checkpoint_save(
                self.record,
                document,
                role or self.role,
                seen_version,
                self.claim_id,
                idempotency_key=idempotency_key,
            )
        )

    def checkpoint_load(self, role: str | None = None) -> results.Checkpoint:
        """Load the checkpoint of the role that holds the claim, if no other is named."""
        return self._client.checkpoint_load(self.record, role or self.role)

    def get(self, fields: Iterable[str] | None = None) -> results.Record:
        return self._client.get(self.record, fields)

    def complete(
        self, value: Any = None, evidence: str | None = None, *, idempotency_key: str | None = None
    ) -> results.CompleteResult:
        """End the task with `value` as its result; that ends the claim."""
        return self._end(
            lambda: self._client.complete(
                self.record, self.field, self.claim_id, value, evidence, idempotency_key=idempotency_key
            )
        )

    def release(self, reason: str | None = None, *, idempotency_key: str | None = None) -> results.ReleaseResult:
        """Give the task back; that ends the claim."""
        return self._release(reason, idempotency_key)

    def _release(
        self, reason: str | None, idempotency_key: str | None = None, retry_for: float | None = None
    ) -> results.ReleaseResult:
        client = self._client._twin(retry_for=retry_for)
        return self._end(lambda: client.release(self.record, self.field, self.claim_id, reason, idempotency_key=idempotency_key))

    def _under(self, operation: Callable[[], T]) -> T:
        self.ensure_live()
        try:
            return operation()
        except LeaseLost as lost:
            # A field may be bound to another task than this one: that it has no claim on that one ends nothing here.
            if lost.field == self.field:
                self._lose(lost)
            raise
        except Transient as failed:
            if self.lost.is_set() and self._why is not None:
                unknown = f"The last request was not answered ({failed.message}): whether it was done is unknown"
                raise LeaseLost(f"{self._why.message}. {unknown}", body=self._why.body) from failed
            raise

    def _end(self, operation: Callable[[], T]) -> T:
        # Until it is answered the lease is kept, and a renewal that meets the ended claim is no loss.
        self._ending = True
        try:
            answer = self._under(operation)
            self._ended = True
        finally:
            self._ending = False
        self.let_go()
        return answer

    # How it is lost

    def _lose(self, why: LeaseLost) -> None:
        with self._lock:
            if self._why is not None or self._ended:
                return
            self._why = why
            self.lost.set()
        log.warning("lease lost: %s %s: %s", self.record, self.field, why.message)
        self._gone = True
        self._wake.set()
        if self.on_lost is not None:
            try:
                self.on_lost(why)
            except Exception:  # the caller's code, perhaps in the background thread
                log.exception("on_lost failed")

    def _run_out(self) -> bool:
        """Whether the lease has run out unconfirmed; notices it if so."""
        if self._ended or self._clock.now() < self._deadline:
            return False
        message = (
            f"the lease on {self.field} of {self.record} ran out without a confirmed renewal. Write nothing more under it; "
            "load the checkpoint before you claim again"
        )
        body = {"error": "LEASE_LOST", "field": self.field, "message": message, "record": self.record}
        self._lose(LeaseLost(message, body={**body, "owner": None, "reason": "unconfirmed"}))
        return True

    # The thread

    def _renew(self, lease_seconds: int | None = None, **how: Any) -> results.RenewResult:
        if lease_seconds is not None:
            # Should the answer be lost, the lease may have become a shorter one.
            self._deadline = min(self._deadline, self._clock.now() + lease_seconds)
        answer, sent_at = self._client._renew(self.record, self.field, self.claim_id, lease_seconds, **how)
        # An answer that comes after the end does not bring the claim back: the work has been told.
        self.ensure_live()
        with self._lock:
            self._renew_at = sent_at + answer.lease_seconds / 3
            self._deadline = sent_at + answer.lease_seconds
            self.expires_at, self.lease_seconds = answer.expires_at, answer.lease_seconds
        return answer

    def _keep(self) -> None:
        failures = 0
        while True:
            woken = self._clock.wait(min(self._renew_at, self._deadline) - self._clock.now(), self._wake)
            self._wake.clear()
            if self._gone or self._run_out():
                return
            if woken:
                continue
            try:
                self._renew(timeout=self._patience(), retry_for=0)
            except LeaseLost as lost:
                if not (self._ending and lost.reason in ("completed", "released")):
                    self._lose(lost)
                return
            except Exception as failed:  # noqa: BLE001  whatever it is, the lease may yet be saved
                failures += 1
                self._renew_at = self._clock.now() + self._pause(failures, failed)
                left = self.seconds_left
                log.warning("could not renew %s %s: %s; %.1f s of the lease are left", self.record, self.field, failed, left)
            else:
                failures = 0

    def _patience(self) -> float:
        usual = min(max(self.lease_seconds / 4, _SHORTEST_RENEWAL), _LONGEST_RENEWAL, self._client._transport.timeout)
        return max(min(usual, self._deadline - self._clock.now()), 0.05)

    def _pause(self, failures: int, failed: Exception) -> float:
        asked = getattr(failed, "retry_after_seconds", None) or 0.0
        jitter = random.uniform(0.05, min(0.1 * 2.0 ** min(failures, 10), self.lease_seconds / 6))
        return max(jitter, min(asked, self.seconds_left / 2))


class _Lost(threading.Event):
    """Set as soon as the clock passes the claim's end, even if the thread that renews it hangs, or there is none."""

    def __init__(self, claim: Claim) -> None:
        super().__init__()
        self._claim = claim

    def is_set(self) -> bool:
        return super().is_set() or self._claim._run_out()

    def wait(self, timeout: float | None = None) -> bool:
        clock = self._claim._clock
        until = None if timeout is None else clock.now() + timeout
        while not self.is_set():
            now = clock.now()
            if self._claim._ended:
                # Never to be set: wait as one would for an event that nobody sets.
                return super().wait(None if until is None else max(until - now, 0.0))
            left = max(self._claim._deadline - now, 0.0)
            if until is not None:
                if now >= until:
                    return False
                left = min(left, until - now)
            super().wait(left)
        return True
