"""The agent loop: claim, work, and go on, for weeks."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kslate._actions import Complete, Release
from kslate._claim import Claim
from kslate._client import Client
from kslate._cycle import Agent, AgentFailed, DecisionOvertaken, Work
from kslate._errors import Completed, Held, Internal, KslateError, LeaseLost, Transient, UnexpectedAnswer
from kslate._signals import StopSignals

log = logging.getLogger("kslate")

_PASSING = (Transient, Internal, UnexpectedAnswer)
_LONGEST_BACK_OFF = 60.0


@dataclass
class Summary:
    """What a run has done: cycles begun; tasks completed, given back, and lost to the clock or to another worker."""

    cycles: int = 0
    completed: int = 0
    released: int = 0
    lost: int = 0


def run(
    agent: Agent,
    client: Client,
    *,
    class_name: str | None = None,
    record: str | None = None,
    claim_field: str,
    lease_seconds: int | None = None,
    poll_seconds: float = 2.0,
    filter: Mapping[str, Any] | None = None,
    max_cycles: int | None = None,
) -> Summary:
    """Let the agent work the task `claim_field`: of whatever record of `class_name` is free (and matches `filter`), or of the one
    `record` until it is completed. Exactly one of the two.

    A claimed record is worked in cycles (read the fields, decide, carry out, checkpoint) until the agent completes or releases
    it; the lease is renewed meanwhile. A decision of None waits `poll_seconds` and decides again, with the claim held. With
    nothing to claim one request is sent every `poll_seconds`.

    Goes on after lost leases, outages, and an agent that raises (the task is given back with the reason, and the loop backs
    off, a minute at most). Ends with the error where the agent or its rights are at fault: a refusal that would come again,
    such as InvalidCheckpoint, ScopeDenied or Malformed, or an action that is none. Ends after `max_cycles` cycles, and on
    SIGTERM or SIGINT, when the cycle is finished, checkpointed and the task given back; only the main thread listens for them.
    """
    if (class_name is None) == (record is None):
        raise ValueError("run works either a class_name or one record")
    if record is not None and filter is not None:
        raise ValueError("a filter is for a class_name")
    if poll_seconds <= 0:
        raise ValueError("poll_seconds must be above 0")
    with StopSignals() as stop:
        loop = _Loop(agent, client, stop, poll_seconds, max_cycles)
        patient = client._twin(stop=stop)

        def claim() -> Claim | None:
            if class_name is not None:
                return patient.claim_next(class_name, claim_field, lease_seconds, filter)
            try:
                return patient.claim(record or "", claim_field, lease_seconds)
            except Held as held:
                log.debug("%s", held.message)
                return None

        loop.run(claim, f"{claim_field} of {class_name or record}")
        return loop.summary


class _Loop:
    def __init__(self, agent: Agent, client: Client, stop: StopSignals, poll_seconds: float, max_cycles: int | None) -> None:
        self.summary = Summary()
        self._agent = agent
        self._clock = client._transport.clock
        self._stop = stop
        self._poll_seconds = poll_seconds
        self._max_cycles = max_cycles
        self._failures = 0

    def run(self, claim_one: Callable[[], Claim | None], what: str) -> None:
        idle = False
        while self._why_stop() is None:
            try:
                claim = claim_one()
            except Completed as done:
                log.info("%s", done.message)
                return
            except _PASSING as failed:
                self._back_off(f"could not claim {what}: {failed.message}")
                continue
            if claim is not None:
                idle = False
                self._work(claim)
                continue
            if not idle:
                log.info("nothing to claim in %s; asking again every %g s", what, self._poll_seconds)
            idle = True
            self._pause()
        log.info("stopping: %s", self._why_stop())

    def _work(self, claim: Claim) -> None:
        """Work the claim until it is over, one way or another; whatever happens, the thread that keeps it ends."""
        before = f", took over from {claim.took_over_from}" if claim.took_over_from else ""
        log.info("claimed %s %s (epoch %d%s)", claim.record, claim.field, claim.epoch, before)
        claim.keep_alive()
        try:
            self._cycles(claim)
        except LeaseLost:
            if not claim.lost.is_set():  # a field wants the claim of another task
                self._give_back(claim, "LeaseLost in the work")
                raise
            self._lost(claim)
        except AgentFailed as failed:
            log.warning("%s: %s", claim.record, failed, exc_info=failed.__cause__)
            self._give_back(claim, str(failed))
            self._back_off(f"{claim.record}: {failed}")
        except DecisionOvertaken as overtaken:
            self._give_back(claim, str(overtaken))
            self._back_off(f"{claim.record}: {overtaken}")
        except _PASSING as failed:
            self._give_back(claim, f"{failed.error or type(failed).__name__} in the work", retry_for=0)
            self._back_off(f"{claim.record}: {failed.message}")
        except BaseException as fault:
            self._give_back(claim, f"{type(fault).__name__} in the work")
            raise
        finally:
            claim.let_go()

    def _cycles(self, claim: Claim) -> None:
        work = Work(self._agent, claim)
        waiting = False
        while True:
            self.summary.cycles += 1
            outcome = work.cycle()
            self._failures = 0
            if isinstance(outcome.ending, Complete):
                self.summary.completed += 1
                return
            if isinstance(outcome.ending, Release):
                self.summary.released += 1
                # The task given back may be the next one in the queue.
                self._pause()
                return
            why = self._why_stop()
            if why is None and not outcome.acted:
                if not waiting:
                    log.info("%s: nothing to do now; deciding again every %g s", claim.record, self._poll_seconds)
                self._pause()
                why = self._why_stop()
            waiting = not outcome.acted
            if why is not None:
                self._give_back(claim, why)
                return

    def _lost(self, claim: Claim) -> None:
        self.summary.lost += 1
        log.info("%s: the lease is lost, nothing more is written", claim.record)

    def _give_back(self, claim: Claim, reason: str, retry_for: float | None = None) -> None:
        if claim.lost.is_set():
            self._lost(claim)
            return
        try:
            claim._release(reason, retry_for=retry_for)
        except KslateError as refused:
            log.warning("%s could not be released, its lease runs out by itself: %s", claim.record, refused.message)
        else:
            self.summary.released += 1
            log.info("%s: released %s: %s", claim.record, claim.field, reason)

    def _why_stop(self) -> str | None:
        if self._stop.received is not None:
            return f"stopped by {self._stop.received}"
        if self._max_cycles is not None and self.summary.cycles >= self._max_cycles:
            return f"stopped after {self.summary.cycles} cycles"
        return None

    def _pause(self) -> None:
        # A little more than asked for, so that a fleet that was started at once does not ask at once for ever.
        self._clock.wait(self._poll_seconds * random.uniform(1, 1.1), self._stop)

    def _back_off(self, why: str) -> None:
        longest = min(self._poll_seconds * 2.0 ** min(self._failures, 16), _LONGEST_BACK_OFF)
        self._failures += 1
        delay = max(random.uniform(longest / 2, longest), 0.1)
        log.warning("%s; going on in %.1f s", why, delay)
        self._clock.wait(delay, self._stop)
