"""JSON that keeps what a value is: every digit of a number, and no key that was not a string."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

# Python refuses to read integers of more than 4300 digits (sys.set_int_max_str_digits), PostgreSQL stores them.
_INT_DIGITS = 4000


def encode(value: Any) -> bytes:
    """The value as JSON in UTF-8. Raises TypeError or ValueError for what is not JSON (a set, NaN, a key that is no string)."""
    # A lone surrogate is passed on: the server says where it stands.
    return _text(value).encode("utf-8", "surrogatepass")


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_key(key)}:{_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} is not JSON")
        return str(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key of a JSON object is a string, not {type(key).__name__}: {key!r}")
    return json.dumps(key, ensure_ascii=False)


def decode(text: bytes, parse_float: Callable[[str], Any] = float) -> Any:
    """The JSON text as Python values. Integers are exact; other numbers go through `parse_float`, but one that a float cannot
    hold at all (1e400) becomes a Decimal, never an infinity."""
    return json.loads(text, parse_int=_integer, parse_float=_finite if parse_float is float else parse_float)


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _INT_DIGITS else Decimal(digits)


def _finite(digits: str) -> float | Decimal:
    number = float(digits)
    return number if math.isfinite(number) else Decimal(digits)
