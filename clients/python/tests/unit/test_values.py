"""JSON, times and results: what comes in goes out as it was."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from kslate import Checkpoint, ClassSummary, WriteResult
from kslate import _json as kslate_json
from kslate._results import decode
from kslate._time import parse_time, printed


@pytest.mark.parametrize("text", ["12345678901234567890123", "1e400", "-0", "[0.5,null,true]", '{"ü":"\\n"}', "9" * 5000])
def test_json_keeps_every_digit(text: str) -> None:
    value = kslate_json.decode(text.encode())
    assert kslate_json.decode(kslate_json.encode(value)) == value
    assert float("inf") != value


def test_decimals_on_demand() -> None:
    value = kslate_json.decode(b'{"a":[1.10,2]}', Decimal)
    assert value == {"a": [Decimal("1.10"), 2]}
    assert kslate_json.encode(value) == b'{"a":[1.10,2]}'


@pytest.mark.parametrize("value", [{1: "one"}, {1, 2}, float("nan"), Decimal("Infinity"), object()])
def test_what_is_not_json_is_refused_here(value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        kslate_json.encode({"value": value})


def test_mappings_and_tuples_are_json_too() -> None:
    class Mine(dict[str, Any]):
        pass

    assert kslate_json.encode(Mine(a=(1, "é"))) == '{"a":[1,"é"]}'.encode()


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("2026-11-29T14:40:12+00:00", 0),
        ("2026-11-29T14:40:12.1Z", 100_000),
        ("2026-11-29T14:40:12.123456+00:00", 123_456),
        ("2026-11-29T14:40:12.123456789+00:00", 123_456),
        ("2026-11-29T16:10:12.5+01:30", 500_000),
    ],
)
def test_times_have_any_number_of_digits(text: str, microseconds: int) -> None:
    assert parse_time(text) == datetime(2026, 11, 29, 14, 40, 12, microseconds, tzinfo=timezone.utc)
    assert parse_time(text).utcoffset() == timedelta(0)


@pytest.mark.parametrize("fraction", ["", ".5", ".38382", ".382821", ".000001"])
def test_a_time_is_printed_as_the_server_prints_it(fraction: str) -> None:
    text = f"2026-11-29T14:40:12{fraction}+00:00"
    assert printed(parse_time(text)) == text


def test_an_endless_lease_is_a_time_too() -> None:
    assert parse_time("infinity") > parse_time("9998-01-01T00:00:00+00:00")
    with pytest.raises(ValueError):
        parse_time("tomorrow")


WRITTEN = {
    "record": "incidents/inc-1",
    "field": "status",
    "version": 2,
    "record_version": 3,
    "author": "apikey:diagnoser",
    "role": "diagnoser",
    "evidence": None,
    "changed_at": "2026-11-29T14:40:20+00:00",
}


def test_unknown_keys_are_ignored() -> None:
    assert decode(WriteResult, {**WRITTEN, "mood": "good"}) == decode(WriteResult, WRITTEN)


@pytest.mark.parametrize("wrong", [{"version": "2"}, {"version": True}, {"changed_at": "soon"}, {"author": None}])
def test_another_shape_is_told(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        decode(WriteResult, {**WRITTEN, **wrong})
    with pytest.raises(ValueError):
        decode(WriteResult, {key: value for key, value in WRITTEN.items() if key not in wrong})


def test_arrays_become_tuples_and_class_becomes_class_name() -> None:
    body = {
        "record": "incidents/inc-1",
        "role": "remediator",
        "document": None,
        "record_version": 0,
        "changed_fields": [{"field": "status", "version": 1, "author": "apikey:diagnoser", "evidence": None}],
    }
    assert decode(Checkpoint, body).changed_fields[0].version == 1
    summary = {"class": "incidents", "version": 1, "description": None, "applied_by": "pg:kslate"}
    assert decode(ClassSummary, {**summary, "applied_at": "2026-11-29T14:40:20+00:00"}).class_name == "incidents"
