"""An agent that runs for weeks: ten thousand cycles take up no more than a thousand did; one with nothing to do hardly asks."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.deployment import Deployment
from support.proxy import Proxy
from support.waiting import until

from kslate import Agent, Client, Fields, run

HERE = Path(__file__).resolve().parent
GROWTH = 5 * 1024  # KiB


@pytest.fixture
def not_durable(deployment: Deployment) -> Iterator[Deployment]:
    """Without waiting for the disk at each of tens of thousands of commits; a crash is no matter here."""
    deployment.psql("alter role kslate_server set synchronous_commit = off")
    deployment.restart_server()
    yield deployment
    deployment.psql("alter role kslate_server reset synchronous_commit")
    deployment.restart_server()


def test_ten_thousand_cycles_take_up_no_more(not_durable: Deployment) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "under_fire.many_cycles", not_durable.own_record(), "1000", "10000"],
        cwd=HERE.parent,
        env=not_durable.environment("w1-token"),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    early, late = map(json.loads, done.stdout.splitlines())
    assert late["rss"] - early["rss"] <= GROWTH, (early, late)
    assert (late["threads"], late["files"]) == (early["threads"], early["files"]), (early, late)
    assert late["threads"] <= 2, late  # its own, and the one that renews


def test_with_nothing_to_claim_it_asks_once_a_poll(deployment: Deployment) -> None:
    poll, wanted = 0.25, 9
    class_name = deployment.own_class()

    def nothing(_: Fields) -> None:
        raise AssertionError("there is nothing to decide")

    with Proxy(deployment.port) as proxy, Client(proxy.server, "w1-token") as client:
        begun = time.monotonic()

        def work() -> None:
            run(Agent(nothing), client, class_name=class_name, claim_field="remediation", poll_seconds=poll, max_cycles=1)

        loop = threading.Thread(target=work)
        loop.start()
        until(f"it has asked {wanted} times", lambda: len(proxy.seen) >= wanted)
        took = time.monotonic() - begun
        assert took >= (wanted - 1) * poll
        assert {(seen.method, seen.path) for seen in proxy.seen} == {("POST", f"/v1/classes/{class_name}/claim")}
        # It ends by itself once there is something: a record whose agent raises gives it back, and the one cycle is over.
        deployment.own_record(class_name)
        loop.join(30)
        assert not loop.is_alive()
