"""Waiting for something to be so, never for a while."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(what: str, ask: Callable[[], T | None], seconds: float = 60.0) -> T:
    """Asks again and again until the answer is true, and gives it; fails with `what` once `seconds` are over."""
    deadline = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not so after {seconds:g} s: {what}")
        time.sleep(0.01)
