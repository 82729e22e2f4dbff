"""Twenty agents, and for a minute one that holds a live claim is killed every second, others are stopped past their lease."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.checker import check
from support.deployment import Deployment
from support.recording import Recording
from support.waiting import until

from under_fire.doctorings import DOCTORINGS
from under_fire.storm import Storm

SECONDS = 60
RECORDS = 500
AGENTS = 20
# With less it was not tried.
LEAST_KILLS, LEAST_TAKEOVERS, LEAST_LEASE_LOST = 40, 30, 5
CLASS = Path(__file__).with_name("storm.yaml")


def test_nothing_is_lost_or_done_twice(deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> None:
    seed = time.time_ns() % 1_000_000
    storm = Storm(deployment, deployment.apply_class(CLASS.read_text()), records=RECORDS, agents=AGENTS, seed=seed)
    begun = time.monotonic()

    def tell(text: str) -> None:
        with capsys.disabled():
            print(f"\n    {time.monotonic() - begun:3.0f} s  {text}", end="", flush=True)

    try:
        tell(f"storm of {AGENTS} agents on {RECORDS} tasks, seed {seed}")
        until("the agents are under way", lambda: len(storm.holders()) >= AGENTS // 2)
        for second in range(SECONDS):
            next_at = time.monotonic() + 1
            holders = storm.holders()
            while holders and not storm.kill(holders.pop()):
                pass
            for holder in holders[:1] if second % 3 == 0 else []:
                storm.stop(holder)
            for holder in holders[1:3]:
                storm.change_plan(holder.record)
            storm.wake()
            storm.must_run()
            if second % 10 == 9:
                tell(f"{len(storm.kills)} killed, {storm.stops} stopped, {storm.completed()} tasks completed")
            time.sleep(max(0.0, next_at - time.monotonic()))
        recording = storm.finish(seconds=240)
    finally:
        storm.close()
    kills, takeovers, lost = len(recording.kills), recording.takeovers(), recording.lease_lost_answers()
    tell(f"all completed: {kills} killed, {storm.stops} stopped, {takeovers} takeovers, {lost} LEASE_LOST\n")
    assert check(recording) == []
    assert (kills >= LEAST_KILLS, takeovers >= LEAST_TAKEOVERS, lost >= LEAST_LEASE_LOST) == (True, True, True), "not tried"
    records = list(recording.by_record())
    for doctor, found_by in DOCTORINGS.items():
        doctored = doctored_once(records, doctor)
        assert [finding for finding in check(doctored) if finding.startswith(f"{found_by}: ")], doctor.__name__


def doctored_once(records: list[Recording], doctor: Callable[[Recording], None]) -> Recording:
    """The first record of the run that the doctoring can be applied to, doctored."""
    for record in records:
        doctored = copy.deepcopy(record)
        try:
            doctor(doctored)
        except (StopIteration, IndexError):
            continue
        return doctored
    raise AssertionError(f"no record to doctor: {doctor.__name__}")
