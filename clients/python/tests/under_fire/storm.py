"""A crowd of agent processes on the tasks of one class, and the means to kill and stop those that hold a claim."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.deployment import Deployment
from support.recording import Kill, Recording, history_of, read_logs
from support.waiting import until

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Holder:
    """A live claim, as the API tells it."""

    record: str
    epoch: int
    owner: str


@dataclass
class Slot:
    """The place of one agent: an identity, the log of all its processes, and the process of now."""

    identity: str
    log: Path
    process: subprocess.Popen[bytes]
    stopped_at: Holder | None = None
    _read: int = 0
    _granted: set[tuple[str, int]] = field(default_factory=set)

    def granted(self, record: str, epoch: int) -> bool:
        """Was this grant told to the process of now, and not to one before it?"""
        with self.log.open() as file:
            file.seek(self._read)
            while (line := file.readline()).endswith("\n"):
                self._read = file.tell()
                note = json.loads(line)
                if (
                    note["event"] == "answered"
                    and note["answer"]
                    and "claim_id" in note["answer"]
                    and note["pid"] == self.process.pid
                ):
                    self._granted.add((note["answer"]["record"], note["answer"]["epoch"]))
        return (record, epoch) in self._granted


class Storm:
    """`records` tasks of two or three steps, and `agents` processes that work them."""

    def __init__(self, deployment: Deployment, class_name: str, *, records: int, agents: int, seed: int) -> None:
        self.deployment = deployment
        self.class_name = class_name
        self.random = random.Random(seed)
        self.kills: list[Kill] = []
        self.stops = 0
        self.folder = Path(tempfile.mkdtemp(prefix="storm-", dir=deployment.folder))
        self.records = [f"{class_name}/task-{number}" for number in range(records)]
        for record in self.records:
            deployment.call("PUT", f"/v1/records/{record}", {"fields": {"size": self.random.choice((2, 3))}})
        self.slots = {}
        for number in range(1, agents + 1):
            identity = f"remediator/worker-{number}"
            log = self.folder / f"agent-{number}.jsonl"
            log.touch()
            self.slots[f"apikey:{identity}"] = Slot(identity, log, self._start(identity, log))

    def _start(self, identity: str, log: Path) -> subprocess.Popen[bytes]:
        with log.with_suffix(".err").open("ab") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "under_fire.storm_agent", identity, log, self.class_name],
                cwd=HERE.parent,
                env=self.deployment.environment(self.deployment.token(identity)),
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
            )

    # Who holds what

    def _claims(self) -> Iterator[tuple[str, dict[str, Any]]]:
        after = ""
        while True:
            page = self.deployment.call("GET", f"/v1/records/{self.class_name}?fields=job&page_size=1000{after}")
            for record in page["records"]:
                yield record["record"], record["fields"][0]["claim"]
            if page["next"] is None:
                return
            after = f"&after={page['next']}"

    def holders(self) -> list[Holder]:
        """The live claims whose process runs and knows of it, in random order."""
        holders = [
            Holder(record, claim["epoch"], claim["owner"])
            for record, claim in self._claims()
            if claim["live"] and self.slots[claim["owner"]].granted(record, claim["epoch"])
        ]
        holders = [holder for holder in holders if self.slots[holder.owner].stopped_at is None]
        self.random.shuffle(holders)
        return holders

    def is_live(self, holder: Holder) -> bool:
        claim = self.deployment.call("GET", f"/v1/records/{holder.record}/fields/job")["claim"]
        return bool(claim["live"]) and (claim["epoch"], claim["owner"]) == (holder.epoch, holder.owner)

    def completed(self) -> int:
        return sum(claim["state"] == "completed" for _, claim in self._claims())

    # What is done to them

    def kill(self, holder: Holder) -> bool:
        """SIGKILL to a process that holds a live claim, and another in its place; False where the claim was over by then.

        It is stopped first: so it cannot end the claim between the question and the kill.
        """
        slot = self.slots[holder.owner]
        slot.process.send_signal(signal.SIGSTOP)
        held = self.is_live(holder)
        if held:
            slot.process.kill()
            slot.process.wait()
            self.kills.append(Kill(holder.record, holder.epoch, holder.owner))
            # The plan changes while nobody is working.
            self.change_plan(holder.record)
            slot.process = self._start(slot.identity, slot.log)
        else:
            slot.process.send_signal(signal.SIGCONT)
        return held

    def stop(self, holder: Holder) -> None:
        """SIGSTOP, until `wake` finds its lease over."""
        slot = self.slots[holder.owner]
        slot.process.send_signal(signal.SIGSTOP)
        slot.stopped_at = holder

    def wake(self) -> None:
        """SIGCONT to the stopped whose lease is over by now."""
        for slot in self.slots.values():
            if slot.stopped_at and not self.is_live(slot.stopped_at):
                slot.process.send_signal(signal.SIGCONT)
                slot.stopped_at = None
                self.stops += 1

    def change_plan(self, record: str) -> None:
        """The planner changes its mind."""
        version = self.deployment.call("GET", f"/v1/records/{record}/fields/plan")["version"]
        body = {
            "value": f"plan {version + 1}",
            "expected_version": version,
            "evidence": f"thought again, {version + 1}",
        }
        self.deployment.call("PUT", f"/v1/records/{record}/fields/plan", body)

    # Its end

    def finish(self, seconds: float) -> Recording:
        """Waits until all is done, ends the agents with SIGTERM, each of which must end well; gathers what is left."""

        def done() -> bool:
            self.wake()
            self.must_run()
            return self.completed() == len(self.records)

        until(f"all {len(self.records)} tasks are completed", done, seconds)
        for slot in self.slots.values():
            slot.process.terminate()
        for slot in self.slots.values():
            status = slot.process.wait(30)
            assert status == 0, f"{slot.identity} ended with {status} after SIGTERM:\n{self._errors(slot)}"
        exchanges, decisions = read_logs(slot.log for slot in self.slots.values())
        return Recording(history_of(self.deployment, self.class_name), exchanges, decisions, self.kills)

    def must_run(self) -> None:
        """No agent has ended by itself."""
        for slot in self.slots.values():
            status = slot.process.poll()
            assert status is None, f"{slot.identity} ended by itself with {status}:\n{self._errors(slot)}"

    def _errors(self, slot: Slot) -> str:
        return slot.log.with_suffix(".err").read_text()[-4000:]

    def close(self) -> None:
        """Ends whoever still runs."""
        for slot in self.slots.values():
            slot.process.kill()
            slot.process.wait()
