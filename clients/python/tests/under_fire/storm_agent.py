"""One agent of the storm: python -m under_fire.storm_agent IDENTITY LOG CLASS. What it asks and is answered stands in LOG."""

from __future__ import annotations

import itertools
import logging
import math
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.wiretap import Wiretap

from kslate import Action, Agent, Append, Client, Complete, Fields, LeaseLost, Write, run

TASK = "job"
SHORTEST, LONGEST = 0.2, 3.0  # seconds of work in a step


class StormAgent:
    """Does a task's steps one a cycle. Each entry of `log` is a step that was done, by whomever."""

    def __init__(self, client: Client, wiretap: Wiretap) -> None:
        self._client = client
        self._wiretap = wiretap
        self._numbers = itertools.count(1)

    def decide(self, fields: Fields) -> Iterator[Action]:
        self._wiretap.note(
            "decide",
            record=fields.record,
            record_version=fields.record_version,
            claim_id=fields.claim.claim_id,
            versions={name: fields.version(name) for name in fields},
            changed_fields=[(change.field, change.version) for change in fields.changed_fields],
        )
        step = len(fields["log"]) + 1
        if step > fields["size"]:
            yield Complete(self._signed(fields, steps=step - 1))
            return
        yield Write("stage", self._signed(fields, step=step))
        entry = self._signed(fields, step=step, plan=fields.version("plan"))
        if fields.claim.lost.wait(seconds_of_work(fields.record, step)):
            self._write_all_the_same(fields, entry)
        yield Append("log", entry)

    def _signed(self, fields: Fields, **value: Any) -> dict[str, Any]:
        """A value that no other write has, and that tells under which claim it was meant."""
        return value | {"epoch": fields.claim.epoch, "pid": os.getpid(), "nonce": next(self._numbers)}

    def _write_all_the_same(self, fields: Fields, entry: dict[str, Any]) -> None:
        """Told that the lease is lost, it does what it must not do: the pending write, past the package, under the old claim."""
        try:
            self._client.append(fields.record, "log", entry, claim_id=fields.claim.claim_id)
        except LeaseLost as lost:
            self._wiretap.note("fenced", record=fields.record, reason=lost.reason)


def account(fields: Fields) -> dict[str, Any]:
    return {"progress": len(fields["log"]), "plan_version": fields.version("plan")}


def seconds_of_work(record: str, step: int) -> float:
    """Short steps more often than long ones; the same for whoever does the step."""
    return math.exp(random.Random(f"{record} {step}").uniform(math.log(SHORTEST), math.log(LONGEST)))


def main() -> None:
    identity, log, class_name = sys.argv[1:]
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(message)s")
    wiretap = Wiretap(Path(log), identity)
    with Client() as client:
        agent = StormAgent(client, wiretap)
        run(Agent(agent.decide, account), client, class_name=class_name, claim_field=TASK, poll_seconds=0.2)


if __name__ == "__main__":
    main()
