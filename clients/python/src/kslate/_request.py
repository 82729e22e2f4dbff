"""A request as it is meant: how the arguments of a method become a path, a query and a body."""

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kslate._errors import Malformed


@dataclass(frozen=True)
class Call:
    """A request as it is meant, before it is sent once or more often."""

    method: str
    path: str
    query: Mapping[str, str] | None = None
    body: Any = None
    source: str | None = None  # a class definition in YAML, instead of a body
    idempotency_key: str | None = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class Change:
    """One change of `Client.write_many`."""

    field: str
    value: Any
    expected_version: int | None = None
    evidence: str | None = None


def new_key() -> str:
    return str(uuid.uuid4())


def record_path(record: str, *rest: str) -> str:
    class_name, slash, key = record.partition("/")
    if not slash:
        raise Malformed(f"a record is named class/key, not {record!r}")
    return path_of("records", class_name, key, *rest)


def path_of(*segments: str) -> str:
    for segment in segments:
        if segment in ("", ".", ".."):
            raise Malformed(f"{segment!r} is the name of nothing")
    return "/v1/" + "/".join(quote(segment, safe="") for segment in segments)


def given(**keys: Any) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value is not None}


def query_of(**keys: Any) -> dict[str, str]:
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in keys.items() if value is not None
    }


def names_of(fields: Iterable[str] | None) -> str | None:
    if isinstance(fields, str):
        return fields
    return None if fields is None else ",".join(fields)


def change_body(change: Change | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(change, Change):
        more = given(expected_version=change.expected_version, evidence=change.evidence)
        return {"field": change.field, "value": change.value, **more}
    return dict(change)
