"""The agent loop's rules, one by one, against a real server."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from support.deployment import Deployment

import kslate
from kslate import Append, Complete, Fields, LeaseLost, Release, Write

from .stage import DOCUMENT, Stage


@pytest.fixture
def stage(deployment: Deployment) -> Iterator[Stage]:
    stage = Stage(deployment)
    yield stage
    stage.close()


def script(*steps: Any) -> Any:
    """A decide that takes one step after the other: an answer, or a function of the fields."""
    coming = iter(steps)

    def decide(fields: Fields) -> Any:
        step = next(coming)
        return step(fields) if callable(step) else step

    return decide


# A cycle


def test_a_cycle_reads_decides_carries_out_and_checkpoints(stage: Stage) -> None:
    record = stage.record()
    decide = script([Write("status", "mitigating", "paged"), Append("actions_taken", "cordoned")], Complete("done", "both"))
    summary = stage.run(decide, lambda fields: {**DOCUMENT, "progress": fields["status"]}, max_cycles=2)
    assert stage.operations() == [
        "POST claim", "GET checkpoint",
        f"GET {record.partition('/')[2]}", "PUT status", "POST entries", "PUT checkpoint",
        f"GET {record.partition('/')[2]}", "PUT checkpoint", "POST complete",
    ]  # fmt: skip
    assert (summary.cycles, summary.completed, summary.released, summary.lost) == (2, 1, 0, 0)
    claim_id = stage.sent[0].answer["claim_id"]
    changes = [sent for sent in stage.sent[1:] if sent.method != "GET"]
    assert {sent.body["claim_id"] for sent in changes} == {claim_id}
    assert changes[0].body["expected_version"] == 1
    task = stage.diagnoser.get(record)["remediation"]
    assert (task.value, task.evidence) == ("done", "both")
    document = stage.client.checkpoint_load(record).document
    assert document is not None
    assert document["progress"] == "mitigating"


def test_the_fields_tell_all_of_it(stage: Stage) -> None:
    record = stage.record(hypotheses={"cause": "lag"})
    stage.diagnoser.write(record, "planned_action", "wait", 0, "hypotheses@1")
    seen: list[Fields] = []

    def decide(fields: Fields) -> Complete:
        seen.append(fields)
        return Complete()

    stage.run(decide, max_cycles=1)
    (fields,) = seen
    assert dict(fields) == {
        "status": "open", "hypotheses": {"cause": "lag"}, "planned_action": "wait", "actions_taken": [], "remediation": None,
    }  # fmt: skip
    assert (fields.version("planned_action"), fields.version("actions_taken")) == (1, 0)
    assert (fields.author("planned_action"), fields.evidence("planned_action")) == ("apikey:diagnoser", "hypotheses@1")
    assert (fields.record, fields.record_version) == (record, 2)
    assert fields.claim.epoch == 1
    assert fields.checkpoint is None
    assert [change.field for change in fields.changed_fields] == ["status", "hypotheses", "planned_action"]
    with pytest.raises(KeyError):
        fields.version("mood")


def test_a_generators_actions_are_carried_out_as_they_come(stage: Stage) -> None:
    record = stage.record()

    def decide(fields: Fields) -> Iterator[Any]:
        yield Append("actions_taken", "one")
        assert stage.diagnoser.get(record)["actions_taken"].version == 1
        yield Write("status", "mitigating")
        yield Write("status", "open")
        yield Complete()
        raise AssertionError("after the last action nothing is asked for")

    assert stage.run(decide, max_cycles=1).completed == 1
    assert stage.ops(record) == ["create", "claim", "append", "write", "write", "complete"]


def test_build_checkpoint_sees_the_fields_after_the_cycle(stage: Stage) -> None:
    record = stage.record()
    after: list[Fields] = []

    def build(fields: Fields) -> dict[str, Any]:
        after.append(fields)
        return DOCUMENT

    stage.run(script([Write("status", "mitigating", "why"), Append("actions_taken", "a", "b")], Complete()), build, max_cycles=2)
    fields, read = after[0], stage.diagnoser.get(record)
    assert (fields["status"], fields.version("status"), fields.evidence("status")) == ("mitigating", 2, "why")
    assert fields.author("status") == "apikey:remediator/worker-1"
    assert fields["actions_taken"] == read["actions_taken"].value
    assert fields.record_version == 3


def test_nothing_to_do_keeps_the_claim_and_asks_again(stage: Stage) -> None:
    record = stage.record()
    summary = stage.run(script(None, [], None, Complete()), lambda fields: DOCUMENT, poll_seconds=3, max_cycles=4)
    assert (summary.cycles, summary.completed) == (4, 1)
    assert stage.ops(record) == ["create", "claim", "complete"]
    assert all(3 <= wait <= 3.3 for wait in stage.clock.waits)
    assert len(stage.clock.waits) == 3


def test_waiting_does_not_fill_the_database_with_one_document(stage: Stage) -> None:
    record = stage.record()
    documents = iter([DOCUMENT, DOCUMENT, {**DOCUMENT, "progress": "waiting"}, None])
    stage.run(script(*[None] * 4), lambda fields: next(documents), max_cycles=4)
    assert [saved.checkpoint_id for saved in stage.client.checkpoint_list(record).checkpoints] == [2, 1]


# What has changed


def test_its_own_cycle_is_no_change(stage: Stage) -> None:
    record = stage.record()
    told: list[list[str]] = []

    def decide(fields: Fields) -> Any:
        told.append([change.field for change in fields.changed_fields])
        return [Write("status", "mitigating"), Append("actions_taken", "x")] if len(told) == 1 else Complete()

    stage.run(decide, lambda fields: DOCUMENT, max_cycles=2)
    assert told == [["status"], []]
    assert stage.client.checkpoint_load(record).changed_fields == ()
    assert stage.client.checkpoint_load(record, checkpoint_id=1).changed_fields == ()


def test_anothers_change_within_the_cycle_is_never_lost(stage: Stage) -> None:
    record = stage.record(hypotheses="lag")
    told: list[list[str]] = []

    def decide(fields: Fields) -> Iterator[Any]:
        told.append([f"{change.field}@{change.version}" for change in fields.changed_fields])
        if len(told) == 1:
            yield Append("actions_taken", "before")
            stage.diagnoser.write(record, "hypotheses", "deploy", 1)
            yield Append("actions_taken", "after")
        else:
            yield Complete()

    stage.run(decide, lambda fields: DOCUMENT, max_cycles=2)
    assert told[1] == ["hypotheses@2"]
    # What a replacement would have been told: seen up to the gap, so the change in it is there.
    saved = stage.client.checkpoint_load(record, checkpoint_id=1)
    assert saved.record_version == 2
    assert "hypotheses" in [change.field for change in saved.changed_fields]


def test_anothers_entry_between_two_of_its_own_is_never_lost(stage: Stage) -> None:
    record = stage.record()
    told: list[list[str]] = []

    def decide(fields: Fields) -> Iterator[Any]:
        told.append([f"{change.field}@{change.version}" for change in fields.changed_fields])
        if len(told) == 1:
            stage.deployment.call(
                "POST", f"/v1/records/{record}/fields/actions_taken/entries", {"value": "theirs"}, token="w2-token"
            )
            yield Append("actions_taken", "mine")
        else:
            yield Complete()

    stage.run(decide, lambda fields: DOCUMENT, max_cycles=2)
    assert told[1] == ["actions_taken@2"]


def test_a_successor_is_told_what_changed_since_the_checkpoint(stage: Stage) -> None:
    record = stage.record()
    stage.run(script(Append("actions_taken", "x"), Release("tired")), lambda fields: DOCUMENT, max_cycles=2)
    stage.diagnoser.write(record, "planned_action", "stop", 0, "outage")
    seen: list[Fields] = []

    def decide(fields: Fields) -> Complete:
        seen.append(fields)
        return Complete()

    stage.run(decide, max_cycles=1)
    assert seen[0].checkpoint == DOCUMENT
    assert [(change.field, change.evidence) for change in seen[0].changed_fields] == [("planned_action", "outage")]
    assert seen[0].changed_fields == stage.client.checkpoint_load(record).changed_fields


# Version conflicts


def test_a_conflict_ends_the_decision_and_it_is_made_anew(stage: Stage) -> None:
    record = stage.record()
    read: list[tuple[str, int]] = []
    closed: list[int] = []

    def decide(fields: Fields) -> Iterator[Any]:
        read.append((fields["status"], fields.version("status")))
        try:
            yield Append("actions_taken", f"decision {len(read)}")
            if len(read) == 1:
                stage.diagnoser.write(record, "status", "mitigating", 1)
            yield Write("status", "open")
            yield Append("actions_taken", "written")
            yield Complete()
        finally:
            closed.append(len(read))

    summary = stage.run(decide, lambda fields: DOCUMENT, max_cycles=1)
    assert read == [("open", 1), ("mitigating", 2)]
    assert closed == [1, 2]
    assert summary.cycles == 1
    entries = [entry.value for entry in stage.client.entries_all(record, "actions_taken")]
    assert entries == ["decision 1", "decision 2", "written"]
    assert stage.operations().count("PUT checkpoint") == 1


def test_a_conflict_that_decide_itself_meets_counts_as_one(stage: Stage) -> None:
    stage.record()
    read: list[int] = []

    def decide(fields: Fields) -> Complete:
        read.append(fields.version("status"))
        fields.claim.write("status", "open", 1 if len(read) > 1 else 7)
        return Complete()

    assert stage.run(decide, max_cycles=1).completed == 1
    assert read == [1, 1]


def test_after_five_more_conflicts_it_gives_back_and_backs_off(stage: Stage) -> None:
    record = stage.record()
    versions: list[int] = []

    def decide(fields: Fields) -> Iterator[Any]:
        versions.append(fields.version("status"))
        stage.diagnoser.write(record, "status", "mitigating", fields.version("status"))
        yield Write("status", "open")

    summary = stage.run(decide, max_cycles=2, poll_seconds=4)
    assert versions == list(range(1, 13))
    assert (summary.cycles, summary.released) == (2, 2)
    assert stage.last(record).reason == "6 version conflicts in a row"
    assert 2 <= stage.clock.waits[0] <= 4
    assert 4 <= stage.clock.waits[1] <= 8


# Faults of the agent, and its failures


@pytest.mark.parametrize(
    ("decision", "error"),
    [
        (Write("planned_action", "mine", "because"), kslate.ScopeDenied),
        (Write("status", "closed"), kslate.InvalidValue),
        (Write("mood", "good"), kslate.NotFound),
        (Write("actions_taken", "x"), kslate.Malformed),
        (Append("actions_taken", {1, 2}), TypeError),
        ("Complete", TypeError),
        (7, TypeError),
        ([Append("actions_taken", "x"), "Complete"], TypeError),
    ],
)
def test_a_fault_of_the_agent_ends_the_loop(stage: Stage, decision: Any, error: type[Exception]) -> None:
    record = stage.record()
    with pytest.raises(error):
        stage.run(lambda fields: decision)
    assert stage.last(record).op == "release"
    assert stage.last(record).reason == f"{error.__name__} in the work"
    assert stage.clock.waits == []


def test_a_checkpoint_without_its_sections_ends_the_loop(stage: Stage) -> None:
    record = stage.record()
    with pytest.raises(kslate.InvalidCheckpoint, match="progress"):
        stage.run(script(Append("actions_taken", "x")), lambda fields: {"goal": "drain node-7"})
    assert stage.last(record).reason == "InvalidCheckpoint in the work"


@pytest.mark.parametrize("token", ["diag-token", "nobody's"])
def test_rights_that_are_missing_end_the_loop(deployment: Deployment, token: str) -> None:
    stage = Stage(deployment, token)
    stage.record()
    with pytest.raises(kslate.Denied):
        stage.run(script())
    stage.close()


def test_an_agent_that_raises_gives_back_backs_off_and_goes_on(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    record = stage.record()

    def fail(fields: Fields) -> None:
        raise RuntimeError("the model is away")

    def fail_late(fields: Fields) -> Iterator[Any]:
        yield Append("actions_taken", "x")
        raise RuntimeError("the model is away")

    summary = stage.run(script(fail, fail_late, fail, Complete()), poll_seconds=4, max_cycles=4)
    assert (summary.cycles, summary.released, summary.completed) == (4, 3, 1)
    reasons = [row.reason for row in stage.diagnoser.history_all(record) if row.op == "release"]
    assert reasons == ["decide raised RuntimeError"] * 3
    for wait, longest in zip(stage.clock.waits, (4, 8, 16), strict=True):
        assert longest / 2 <= wait <= longest
    assert "the model is away" in caplog.text


def test_the_back_off_is_capped(stage: Stage) -> None:
    stage.record()

    def decide(fields: Fields) -> None:
        raise RuntimeError

    stage.run(decide, poll_seconds=4, max_cycles=9)
    assert max(stage.clock.waits) <= 60
    assert stage.clock.waits[-1] >= 30


def test_a_build_checkpoint_that_raises_is_a_failure_too(stage: Stage) -> None:
    record = stage.record()

    def build(fields: Fields) -> dict[str, Any]:
        return {"goal": fields["goal"]}

    assert stage.run(script(Append("actions_taken", "x")), build, max_cycles=1).released == 1
    assert stage.last(record).reason == "build_checkpoint raised KeyError"


# The lease


def test_a_long_decision_keeps_its_claim(stage: Stage) -> None:
    record = stage.record()

    def decide(fields: Fields) -> Complete:
        # Three leases. They are long enough for a machine that is slow.
        while sum(sent.operation == "POST renew" for sent in list(stage.sent)) < 9:
            assert not fields.claim.lost.wait(0.05)
        return Complete()

    assert stage.run(decide, lease_seconds=3, max_cycles=1).completed == 1
    assert stage.ops(record) == ["create", "claim", "complete"]


def test_a_lost_lease_is_told_and_nothing_more_is_written(stage: Stage) -> None:
    record = stage.record()

    def decide(fields: Fields) -> Iterator[Any]:
        yield Append("actions_taken", "mine")
        stage.deployment.call(
            "POST", f"/v1/records/{record}/fields/remediation/release", {"claim_id": fields.claim.claim_id}, token="w1-token"
        )
        assert fields.claim.lost.wait(10)
        assert not fields.claim.live
        with pytest.raises(LeaseLost):
            fields.claim.append("actions_taken", "too late")
        yield Append("actions_taken", "too late")
        raise AssertionError("nothing more is asked for")

    summary = stage.run(decide, lambda fields: DOCUMENT, lease_seconds=3, max_cycles=1)
    assert (summary.lost, summary.released) == (1, 0)
    assert stage.ops(record) == ["create", "claim", "append", "release"]
    assert stage.client.checkpoint_load(record).document is None


def test_after_a_loss_other_work_is_taken_at_once(stage: Stage) -> None:
    first = stage.record()
    second = stage.record()
    worked: list[str] = []

    def decide(fields: Fields) -> Any:
        worked.append(fields.record)
        if fields.record == first:
            stage.deployment.call(
                "POST", f"/v1/records/{first}/fields/remediation/complete", {"claim_id": fields.claim.claim_id}, token="w1-token"
            )
            return Append("actions_taken", "too late")
        return Complete()

    summary = stage.run(decide, max_cycles=2)
    assert worked == [first, second]
    assert (summary.lost, summary.completed) == (1, 1)
    assert stage.clock.waits == []


# Beginning and ending


def test_with_nothing_to_claim_it_asks_once_every_poll_seconds(stage: Stage) -> None:
    stopped = 20

    def stop_in_time(seconds: float, stop: Any = None) -> bool:
        stage.clock.waits.append(seconds)
        if len(stage.clock.waits) == stopped:
            os.kill(os.getpid(), signal.SIGTERM)
        return False

    stage.clock.wait = stop_in_time  # type: ignore[method-assign]
    summary = stage.run(script(), poll_seconds=3)
    assert stage.operations() == ["POST claim"] * stopped
    assert all(3 <= wait <= 3.3 for wait in stage.clock.waits)
    assert summary.cycles == 0


def test_one_record_is_worked_until_it_is_completed(stage: Stage) -> None:
    record = stage.record()
    theirs = kslate.Client(stage.deployment.server, "w2-token")
    held = theirs.claim(record, "remediation")

    def wait(seconds: float, stop: Any = None) -> bool:
        stage.clock.waits.append(seconds)
        if len(stage.clock.waits) == 3:
            held.release()
        return False

    stage.clock.wait = wait  # type: ignore[method-assign]
    with theirs:
        summary = stage.run(script(Release("later"), Complete()), record=record, lease_seconds=3600)
    assert (summary.cycles, summary.released, summary.completed) == (2, 1, 1)
    claims = [sent.status for sent in stage.sent if sent.operation == "POST claim"]
    assert claims == [409, 409, 409, 200, 200, 409]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_the_cycle(stage: Stage, number: signal.Signals, caplog: pytest.LogCaptureFixture) -> None:
    record = stage.record()
    former = signal.getsignal(number)

    def decide(fields: Fields) -> Iterator[Any]:
        os.kill(os.getpid(), number)
        yield Append("actions_taken", "finished")

    with caplog.at_level(logging.INFO, "kslate"):
        summary = stage.run(decide, lambda fields: DOCUMENT)
    assert stage.operations("GET checkpoint")[-3:] == ["POST entries", "PUT checkpoint", "POST release"]
    assert stage.last(record).reason == f"stopped by {number.name}"
    assert (summary.cycles, summary.released) == (1, 1)
    assert signal.getsignal(number) is former
    assert caplog.messages[-1] == f"stopping: stopped by {number.name}"


def test_a_second_interrupt_does_not_wait_for_the_cycle(stage: Stage) -> None:
    record = stage.record()

    def decide(fields: Fields) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        stage.run(decide)
    assert stage.last(record).reason == "KeyboardInterrupt in the work"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_leave_the_signals_alone(stage: Stage) -> None:
    stage.record()
    handlers: list[Any] = []

    def decide(fields: Fields) -> Complete:
        handlers.append(signal.getsignal(signal.SIGTERM))
        return Complete()

    thread = threading.Thread(target=lambda: stage.run(decide, max_cycles=1))
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGTERM)]


def test_cycles_leave_no_thread_behind(stage: Stage) -> None:
    for _ in range(3):
        stage.record()
    before = threading.active_count()
    stage.run(lambda fields: Complete(), max_cycles=3)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    "more",
    [
        {"class_name": "a", "record": "a/b"},
        {"class_name": None},
        {"record": "a/b", "filter": {}},
        {"poll_seconds": 0},
    ],
)
def test_arguments_that_contradict_each_other(stage: Stage, more: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        stage.run(script(), **more)
