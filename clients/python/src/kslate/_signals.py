"""SIGTERM and SIGINT as a wish to stop, instead of an end in the middle of something."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """While it is entered, in the main thread: the first signal sets `received`, a second SIGINT is a KeyboardInterrupt. The
    former handlers are put back. In other threads, and for a signal that is ignored, nothing is installed."""

    def __init__(self) -> None:
        self.received: str | None = None
        # Not an Event: setting one from a handler can deadlock with the wait that it interrupts.
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                former = signal.getsignal(number)
                if former not in (signal.SIG_IGN, None):
                    self._former[number] = former
                    signal.signal(number, self._receive)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)

    def wait(self, timeout: float) -> bool:
        """Wait for a signal; True when one has come."""
        if self.received is None:
            with contextlib.suppress(queue.Empty):
                self._wake.get(timeout=timeout)
        return self.received is not None

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = signal.Signals(number).name
        self._wake.put(None)
