"""Times as the server writes them: RFC 3339 in UTC, with any number of fractional digits."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):?(\d\d)?)", re.IGNORECASE)

# What a hand-written UPDATE can put into a timestamptz.
_ENDLESS = {
    "infinity": datetime.max.replace(tzinfo=timezone.utc),
    "-infinity": datetime.min.replace(tzinfo=timezone.utc),
}


def parse_time(text: str) -> datetime:
    """An aware datetime. Digits beyond microseconds are cut off; PostgreSQL's infinity is the last moment that Python knows.
    Raises ValueError for what is no time."""
    if text in _ENDLESS:
        return _ENDLESS[text]
    parts = _TIME.fullmatch(text)
    if parts is None:
        raise ValueError(f"not a time: {text!r}")
    day, clock, fraction, sign, hours, minutes = parts.groups()
    moment = datetime.fromisoformat(f"{day}T{clock}+00:00")
    away = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    microseconds = timedelta(microseconds=int((fraction or "0")[:6].ljust(6, "0")))
    return moment + microseconds + (away if sign == "-" else -away)


def printed(moment: datetime) -> str:
    """As the server prints a time in JSON: RFC 3339 in UTC, without trailing zeros in the fraction."""
    day_and_clock, _, micros = moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f").partition(".")
    fraction = micros.rstrip("0")
    return f"{day_and_clock}.{fraction}+00:00" if fraction else f"{day_and_clock}+00:00"
