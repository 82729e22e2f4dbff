"""The server is gone for ten seconds, then the database is restarted, each with requests in flight: the agents go on."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.checker import check
from support.deployment import Deployment
from support.waiting import until

from under_fire.storm import Storm

OUTAGE = 10.0
CLASS = Path(__file__).with_name("storm.yaml")


@pytest.fixture
def own() -> Iterator[Deployment]:
    """A deployment that can be broken."""
    with Deployment() as started:
        yield started


def test_agents_outlive_the_server_and_the_database(own: Deployment) -> None:
    own.apply_class(CLASS.read_text())
    storm = Storm(own, "storm", records=60, agents=10, seed=4)
    try:
        until("the agents are under way", lambda: storm.completed() >= 5)
        with own.nobody_can_write():
            until("requests are in flight", lambda: own.waiters() >= 3)
            down = time.time()
            own.stop_server(signal.SIGKILL)
        # What it had passed on to the database is done all the same, and is not to be done again.
        until("ten seconds are over", lambda: time.time() - down >= OUTAGE)
        own.start_server()
        up = time.time()
        before = storm.completed()
        until("the agents are under way again", lambda: storm.completed() >= before + 5)
        with own.nobody_can_write():
            until("requests are in flight", lambda: own.waiters() >= 3)
            broken = time.time()
            own.stop_database(immediate=True)
        own.start_database()
        recording = storm.finish(seconds=240)
    finally:
        storm.close()

    def in_flight(moment: float) -> int:
        """Requests that were sent before that moment and got no answer, or one that it broke."""
        return sum(
            moment - 5 < each.sent_at < moment and (each.status is None or each.status >= 500) for each in recording.exchanges
        )

    assert in_flight(down) >= 3
    assert in_flight(broken) >= 3
    tried = {each.process[0] for each in recording.exchanges if down < each.sent_at < up and each.status is None}
    assert len(tried) == 10, "every agent met the outage"
    assert check(recording) == []
