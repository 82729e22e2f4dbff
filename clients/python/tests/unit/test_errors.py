"""The tree of errors: as drawn, and as raised."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

import kslate
from kslate import _errors
from kslate._errors import error_of

CODES = {
    "MALFORMED": (400, kslate.Malformed, kslate.Rejected),
    "UNAUTHENTICATED": (401, kslate.Unauthenticated, kslate.Denied),
    "SCOPE_DENIED": (403, kslate.ScopeDenied, kslate.Denied),
    "NOT_FOUND": (404, kslate.NotFound, kslate.Rejected),
    "METHOD_NOT_ALLOWED": (405, kslate.MethodNotAllowed, kslate.Rejected),
    "UNSUPPORTED_MEDIA_TYPE": (415, kslate.UnsupportedMediaType, kslate.Rejected),
    "PAYLOAD_TOO_LARGE": (413, kslate.PayloadTooLarge, kslate.Rejected),
    "ALREADY_EXISTS": (409, kslate.AlreadyExists, kslate.Conflict),
    "VERSION_CONFLICT": (409, kslate.VersionConflict, kslate.Conflict),
    "HELD": (409, kslate.Held, kslate.Conflict),
    "LEASE_LOST": (409, kslate.LeaseLost, kslate.Conflict),
    "COMPLETED": (409, kslate.Completed, kslate.Conflict),
    "NOT_COMPLETED": (409, kslate.NotCompleted, kslate.Conflict),
    "IDEMPOTENCY_CONFLICT": (409, kslate.IdempotencyConflict, kslate.Rejected),
    "INVALID_CHECKPOINT": (422, kslate.InvalidCheckpoint, kslate.Rejected),
    "INVALID_VALUE": (422, kslate.InvalidValue, kslate.Rejected),
    "EVIDENCE_REQUIRED": (422, kslate.EvidenceRequired, kslate.Rejected),
    "INVALID_CLASS": (422, kslate.InvalidClass, kslate.Rejected),
    "IMMUTABLE": (409, kslate.Immutable, kslate.Rejected),
    "BUSY": (503, kslate.Busy, kslate.Transient),
    "UNAVAILABLE": (503, kslate.Unavailable, kslate.Transient),
    "TIMEOUT": (504, kslate.Timeout, kslate.Transient),
    "INTERNAL": (500, kslate.Internal, kslate.KslateError),
}


@pytest.mark.parametrize("code", CODES)
def test_each_code_is_a_class(code: str) -> None:
    status, expected, parent = CODES[code]
    body = {"error": code, "field": "status", "message": "why", "record": "incidents/inc-1"}
    error = error_of(status, body, "01JDV1X3S8")
    assert type(error) is expected
    assert issubclass(expected, parent)
    assert (error.error, error.field, error.message, error.record) == (code, "status", "why", "incidents/inc-1")
    assert (error.status, error.request_id, str(error), error.body) == (status, "01JDV1X3S8", "why", body)


@pytest.mark.parametrize(
    ("status", "expected"),
    [(400, "Rejected"), (401, "Denied"), (403, "Denied"), (409, "Conflict"), (500, "Internal"), (503, "Transient")],
)
def test_a_newer_servers_code_is_what_its_status_stands_for(status: int, expected: str) -> None:
    error = error_of(status, {"error": "MOON_PHASE", "message": "not tonight", "phase": 3}, None)
    assert type(error).__name__ == expected
    assert error.error == "MOON_PHASE"
    assert error.body["phase"] == 3


CARRIED: list[tuple[str, dict[str, Any]]] = [
    ("HELD", {"owner": "apikey:w1", "retry_after_seconds": 2}),
    ("LEASE_LOST", {"owner": None, "reason": "lapsed"}),
    ("SCOPE_DENIED", {"needs_one_of": ["diagnoser"], "roles_held": ["remediator"]}),
    ("VERSION_CONFLICT", {"expected_version": 2, "current_version": 3, "value": "x", "author": "a", "evidence": None}),
    ("VERSION_CONFLICT", {"expected_epoch": 2, "current_epoch": 3}),
    ("COMPLETED", {"author": "apikey:w2", "version": 1}),
    ("NOT_COMPLETED", {"author": None, "version": 0}),
    ("MALFORMED", {"path": "/lease"}),
    ("INVALID_VALUE", {"path": ""}),
    ("ALREADY_EXISTS", {"record_version": 4}),
    ("BUSY", {"retry_after_seconds": 1}),
]


@pytest.mark.parametrize(("code", "keys"), CARRIED)
def test_each_carries_its_own_fields(code: str, keys: dict[str, Any]) -> None:
    error = error_of(409, {"error": code, "message": "why", **keys}, None)
    assert {key: getattr(error, key) for key in keys} == keys


def test_times_and_class_are_told_as_python_has_them() -> None:
    held = error_of(409, {"error": "HELD", "message": "", "expires_at": "2026-11-29T14:40:22+00:00"}, None)
    assert isinstance(held, kslate.Held)
    assert held.expires_at is not None
    assert held.expires_at.year == 2026
    fault = {"line": 7, "path": "fields", "message": "unknown mode"}
    invalid = error_of(422, {"error": "INVALID_CLASS", "message": "", "class": "incidents", "faults": [fault]}, None)
    assert isinstance(invalid, kslate.InvalidClass)
    assert (invalid.class_name, invalid.faults) == ("incidents", [fault])


def test_the_docstring_draws_the_tree() -> None:
    drawn = re.findall(r"^ {4}((?:[│├└─ ]{4})*)(\w+)", _errors.__doc__ or "", re.MULTILINE)
    assert drawn[0] == ("", "KslateError")
    parents: list[str] = []
    for indent, name in drawn:
        depth = len(indent) // 4
        error = getattr(kslate, name)
        if depth:
            assert getattr(kslate, parents[depth - 1]) in error.__bases__, name
        parents[depth:] = [name]
    defined = {name for name, value in vars(_errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert {name for _, name in drawn} == defined


@pytest.mark.parametrize("code", CODES)
def test_an_error_survives_a_process_boundary(code: str) -> None:
    error = error_of(409, {"error": code, "message": "why", "owner": "apikey:w1"}, "id")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
