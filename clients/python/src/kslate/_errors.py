"""Every error of kslate, arranged by what a caller does next.

    KslateError
    ├── Rejected                  the request is wrong: sent again, it is refused again
    │   ├── Malformed             .path
    │   ├── NotFound
    │   ├── MethodNotAllowed
    │   ├── UnsupportedMediaType
    │   ├── PayloadTooLarge
    │   ├── InvalidCheckpoint     a section is missing, or (with .field) the gate
    │   ├── InvalidValue          .path
    │   ├── EvidenceRequired
    │   ├── InvalidClass          .class_name .faults
    │   ├── IdempotencyConflict
    │   └── Immutable
    ├── Denied                    this caller may not
    │   ├── Unauthenticated
    │   └── ScopeDenied           .needs_one_of .roles_held
    ├── Conflict                  the record has moved on: read it, and decide anew
    │   ├── AlreadyExists         .record_version
    │   ├── VersionConflict       .expected_version .current_version .value .author .evidence .conflicts
    │   │                         .expected_epoch .current_epoch
    │   ├── Held                  .owner .expires_at .retry_after_seconds
    │   ├── LeaseLost             .owner .reason
    │   ├── Completed             .author .version .completed_at
    │   └── NotCompleted          .author .version
    ├── Transient                 sent again already, for `retry_for` seconds: go on later
    │   ├── Busy                  .retry_after_seconds
    │   ├── Unavailable           .retry_after_seconds
    │   ├── Timeout
    │   ├── ConnectionFailed
    │   └── GatewayFailed         (also an UnexpectedAnswer) a proxy said 429, 502, 503 or 504
    ├── Internal                  the server's log has the cause under .request_id
    └── UnexpectedAnswer          not kslate's answer: a proxy's page, perhaps the wrong address

Each has `error` (the code), `message`, `field`, `record`, `status` (HTTP), `request_id` and `body` (the whole JSON object), None
where there is none. A code that this version does not know is raised as the class that its HTTP status stands for.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from kslate._time import parse_time


class KslateError(Exception):
    """The root: whatever kslate, or the way to it, can answer."""

    code: ClassVar[str | None] = None
    _carries: ClassVar[tuple[str, ...]] = ()

    error: str | None
    message: str
    field: str | None
    record: str | None
    status: int | None
    request_id: str | None
    body: Mapping[str, Any]

    def __init__(
        self,
        message: str = "",
        *,
        status: int | None = None,
        request_id: str | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.body = body if body is not None else {}
        self.error = self.body.get("error", self.code)
        self.message = message
        self.field = self.body.get("field")
        self.record = self.body.get("record")
        self.status = status
        self.request_id = request_id or self.body.get("request_id")
        for key in self._carries:
            value = self.body.get(key)
            setattr(self, _ATTRIBUTE.get(key, key), parse_time(value) if key in _TIMES and value else value)


_ATTRIBUTE = {"class": "class_name"}
_TIMES = {"expires_at", "completed_at"}


class Rejected(KslateError):
    """The request is wrong: sent again, it is refused again."""


class Malformed(Rejected):
    """The request is wrong in itself; `path` is a JSON Pointer into its body."""

    code = "MALFORMED"
    _carries = ("path",)
    path: str | None


class NotFound(Rejected):
    """No such class, record, field, version, checkpoint or route."""

    code = "NOT_FOUND"


class MethodNotAllowed(Rejected):
    code = "METHOD_NOT_ALLOWED"


class UnsupportedMediaType(Rejected):
    code = "UNSUPPORTED_MEDIA_TYPE"


class PayloadTooLarge(Rejected):
    """A body, a value or a checkpoint over its limit, or an answer over the server's: then ask for a smaller page."""

    code = "PAYLOAD_TOO_LARGE"


class InvalidCheckpoint(Rejected):
    """A checkpoint lacks sections; or, with `field`, required roles have not checkpointed what was to be resolved."""

    code = "INVALID_CHECKPOINT"


class InvalidValue(Rejected):
    """The class refuses the value, at the JSON Pointer `path` into it."""

    code = "INVALID_VALUE"
    _carries = ("path",)
    path: str | None


class EvidenceRequired(Rejected):
    """The field wants to know why: send `evidence`."""

    code = "EVIDENCE_REQUIRED"


class InvalidClass(Rejected):
    """The definition has faults; each of `faults` has `line`, `path` and `message`."""

    code = "INVALID_CLASS"
    _carries = ("class", "faults")
    class_name: str | None
    faults: list[dict[str, Any]] | None


class IdempotencyConflict(Rejected):
    """The idempotency key was used for another request."""

    code = "IDEMPOTENCY_CONFLICT"


class Immutable(Rejected):
    """History, checkpoints, classes and keys are never changed."""

    code = "IMMUTABLE"


class Denied(KslateError):
    """This caller may not."""


class Unauthenticated(Denied):
    """No API key, or an unknown one."""

    code = "UNAUTHENTICATED"


class ScopeDenied(Denied):
    """The caller's roles do not allow it."""

    code = "SCOPE_DENIED"
    _carries = ("needs_one_of", "roles_held")
    needs_one_of: list[str] | None
    roles_held: list[str] | None


class Conflict(KslateError):
    """The record has moved on: read it, and decide anew."""


class AlreadyExists(Conflict):
    """The record is there and the first values were not written."""

    code = "ALREADY_EXISTS"
    _carries = ("record_version",)
    record_version: int | None


class VersionConflict(Conflict):
    """Somebody wrote in between: `value` stands there now, at `current_version`. `conflicts` has all of a write_many."""

    code = "VERSION_CONFLICT"
    _carries = (
        "expected_version",
        "current_version",
        "value",
        "author",
        "evidence",
        "conflicts",
        "expected_epoch",
        "current_epoch",
    )
    expected_version: int | None
    current_version: int | None
    value: Any
    author: str | None
    evidence: str | None
    conflicts: list[dict[str, Any]] | None
    expected_epoch: int | None
    current_epoch: int | None


class Held(Conflict):
    """Somebody's lease is live: wait, or take other work."""

    code = "HELD"
    _carries = ("owner", "expires_at", "retry_after_seconds")
    owner: str | None
    expires_at: datetime | None
    retry_after_seconds: int | None


class LeaseLost(Conflict):
    """The claim is not the live one any more: write nothing under it.

    `reason` is the server's (lapsed, taken_over, reattached, released, force_released, completed, reopened, not_claimed), or
    `unconfirmed`: the lease ran out by this machine's clock without a renewal that the server confirmed. `owner` is the live
    holder, None where there is none or nobody was asked.
    """

    code = "LEASE_LOST"
    _carries = ("owner", "reason")
    owner: str | None
    reason: str | None


class Completed(Conflict):
    """The task is done; there is nothing left to claim."""

    code = "COMPLETED"
    _carries = ("author", "version", "completed_at")
    author: str | None
    version: int | None
    completed_at: datetime | None


class NotCompleted(Conflict):
    """There is nothing to reopen."""

    code = "NOT_COMPLETED"
    _carries = ("author", "version")
    author: str | None
    version: int | None


class Transient(KslateError):
    """It may work later. The client has sent it again already, for as long as `retry_for` says."""

    _carries = ("retry_after_seconds",)
    retry_after_seconds: float | None


class Busy(Transient):
    """The record is locked by another change. Nothing was changed."""

    code = "BUSY"


class Unavailable(Transient):
    """The server, or its database, is away, read-only, or not set up."""

    code = "UNAVAILABLE"


class Timeout(Transient):
    """The server gave up waiting for its database. Whether a change was made is unknown."""

    code = "TIMEOUT"


class ConnectionFailed(Transient):
    """No connection, or one that broke before the answer. Unless `sent` is False, whether a change was made is unknown."""

    sent: bool = True


class Internal(KslateError):
    """An unexpected error of the server; its log has the cause under `request_id`."""

    code = "INTERNAL"


class UnexpectedAnswer(KslateError):
    """Something answered that is not kslate, or not one that this client understands."""


class GatewayFailed(UnexpectedAnswer, Transient):
    """Something between here and kslate answered 429, 502, 503 or 504. Whether a change was made is unknown."""


_BY_CODE: dict[str, type[KslateError]] = {
    error.code: error
    for error in (
        Malformed, NotFound, MethodNotAllowed, UnsupportedMediaType, PayloadTooLarge, InvalidCheckpoint, InvalidValue,
        EvidenceRequired, InvalidClass, IdempotencyConflict, Immutable, Unauthenticated, ScopeDenied, AlreadyExists,
        VersionConflict, Held, LeaseLost, Completed, NotCompleted, Busy, Unavailable, Timeout, Internal,
    )
    if error.code is not None
}  # fmt: skip

_BY_STATUS: dict[int, type[KslateError]] = {401: Denied, 403: Denied, 409: Conflict, 503: Transient, 504: Transient}


def error_of(status: int, body: Mapping[str, Any], request_id: str | None) -> KslateError:
    """The exception for an error body of kslate."""
    by_status = _BY_STATUS.get(status, Rejected if status < 500 else Internal)
    raised = _BY_CODE.get(body["error"], by_status)
    return raised(body["message"], status=status, request_id=request_id, body=body)
