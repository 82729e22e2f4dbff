"""The client's only clock, and its only way to wait: tests put another in its place."""

from __future__ import annotations

import time
from typing import Protocol


class Stop(Protocol):
    """What ends a wait early: a threading.Event, or anything like one."""

    def wait(self, timeout: float) -> bool: ...


class Clock:
    """Seconds that never go back and, on Linux, also count while the machine sleeps (CLOCK_BOOTTIME): a lease goes on then."""

    def now(self) -> float:
        return time.clock_gettime(_BOOTTIME) if _BOOTTIME is not None else time.monotonic()

    def wait(self, seconds: float, stop: Stop | None = None) -> bool:
        """Wait; True when `stop` came first."""
        if stop is not None:
            return stop.wait(max(seconds, 0.0))
        time.sleep(max(seconds, 0.0))
        return False


_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)
