"""Each operation once against a real server, and the manual's crash as it is printed there."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from support.deployment import Deployment
from support.waiting import until

from kslate import Change, Client, Held, NotFound, UnexpectedAnswer, WrittenChange

CHECKPOINT = {"goal": "drain node-7", "progress": "4 of 11", "decisions": [], "open_questions": []}

OVERRIDABLE = """
class: overridable
roles:
  worker: ["apikey:remediator/*"]
  boss: [apikey:diagnoser]
create: [boss]
fields:
  note: { mode: lww, write: [boss, worker] }
  job: { mode: task, write: [worker], override: [boss], lease: { default_seconds: 60, max_seconds: 3600 } }
"""


def test_whoami(w1: Client) -> None:
    me = w1.whoami()
    assert (me.identity, me.admin) == ("apikey:remediator/worker-1", False)
    assert me.roles["incidents"] == ["remediator"]


def test_classes(admin: Client) -> None:
    applied = admin.class_apply("overridable", OVERRIDABLE)
    assert (applied.class_name, applied.version, applied.dry_run) == ("overridable", 1, False)
    assert applied.changed
    again = admin.class_apply("overridable", OVERRIDABLE.replace("60", "90"), dry_run=True)
    assert (again.changed, again.dry_run) == (True, True)
    assert again.changes
    definition = admin.class_get("overridable")
    assert definition.source == OVERRIDABLE
    assert admin.class_apply("overridable", {"class": "overridable", **definition.definition}).changed is False
    assert admin.class_get("overridable", version=1) == definition
    assert "overridable" in [known.class_name for known in admin.classes().classes]


def test_create_and_get(diagnoser: Client, deployment: Deployment) -> None:
    record = f"{deployment.own_class()}/inc-1"
    created = diagnoser.create(record, {"hypotheses": {"cause": "lag"}}, "pager 4711")
    assert (created.record, created.record_version, created.created) == (record, 0, True)
    assert isinstance(created.created_at, datetime)
    assert created.created_at.utcoffset() == timedelta(0)
    assert diagnoser.create(record).created is False
    read = diagnoser.get(record)
    assert [state.field for state in read.fields] == [
        "status", "hypotheses", "planned_action", "actions_taken", "remediation",
    ]  # fmt: skip
    assert (read["hypotheses"].value, read["hypotheses"].evidence) == ({"cause": "lag"}, "pager 4711")
    assert (read["planned_action"].value, read["planned_action"].version) == (None, 0)
    assert read["remediation"].claim is not None
    assert read["remediation"].claim.state == "open"
    assert [state.field for state in diagnoser.get(record, ["status"]).fields] == ["status"]
    with pytest.raises(KeyError):
        read["mood"]


def test_list_over_all_pages(diagnoser: Client, deployment: Deployment) -> None:
    name = deployment.own_class()
    records = [deployment.own_record(name) for _ in range(5)]
    page = diagnoser.list(name, page_size=2)
    assert len(page.records) == 2
    assert diagnoser.list(name, page_size=2, after=page.next).records[0].record not in [r.record for r in page.records]
    found = diagnoser.list_all(name, {"status": ["open", "mitigating"]}, fields=["status"], page_size=2)
    assert [(record.record, record["status"].value) for record in found] == [(name, "open") for name in sorted(records)]
    assert list(diagnoser.list_all(name, {"status": "resolved"})) == []


def test_write_and_write_many(diagnoser: Client, record: str) -> None:
    written = diagnoser.write(record, "planned_action", "wait", expected_version=0, evidence="hypotheses@1")
    assert (written.version, written.author, written.evidence) == (1, "apikey:diagnoser", "hypotheses@1")
    many = diagnoser.write_many(
        record,
        [
            Change("hypotheses", None, 0),
            {"field": "planned_action", "value": "go", "expected_version": 1, "evidence": "no"},
        ],
    )
    assert many.record_version == written.record_version + 2
    assert many.changes[0] == WrittenChange("hypotheses", 1, written.record_version + 1, "diagnoser")


def test_numbers_keep_their_digits(diagnoser: Client, deployment: Deployment, record: str) -> None:
    big = 12345678901234567890123456789
    diagnoser.write(record, "hypotheses", [big, Decimal("0.1000000000000000000000001")], 0)
    assert diagnoser.get(record)["hypotheses"].value[0] == big
    with Client(deployment.server, "w1-token", parse_float=Decimal) as exact:
        assert exact.get(record)["hypotheses"].value == [big, Decimal("0.1000000000000000000000001")]


def test_append_and_entries(w1: Client, record: str) -> None:
    for number in range(1, 4):
        added = w1.append(record, "actions_taken", {"step": number}, evidence="planned_action@1", expected_version=number - 1)
        assert added.version == number
    page = w1.entries(record, "actions_taken", page_size=2)
    assert [entry.seq for entry in page.entries] == [1, 2]
    assert [entry.value["step"] for entry in w1.entries_all(record, "actions_taken", page_size=2)] == [1, 2, 3]
    newest = w1.entries_all(record, "actions_taken", page_size=2, newest_first=True)
    assert [entry.seq for entry in newest] == [3, 2, 1]


def test_a_key_of_the_callers_is_honoured(w1: Client, record: str) -> None:
    first = w1.append(record, "actions_taken", "x", idempotency_key="step-1")
    assert w1.append(record, "actions_taken", "x", idempotency_key="step-1") == first


def test_claim_renew_release(w1: Client, w2: Client, record: str) -> None:
    claim = w1.claim(record, "remediation", lease_seconds=60)
    renewal = w1.renew(record, "remediation", claim.claim_id, lease_seconds=90)
    assert (renewal.lease_seconds, renewal.epoch) == (90, claim.epoch)
    assert renewal.expires_at > claim.expires_at
    assert claim.renew(120).lease_seconds == claim.lease_seconds == 120
    assert 119 < claim.seconds_left <= 120
    again = w1.claim(record, "remediation", reattach=True)
    assert again.epoch == claim.epoch + 1
    assert w1.release(record, "remediation", again.claim_id, "enough").epoch == again.epoch
    with w2.claim(record, "remediation") as theirs:
        assert theirs.took_over_from is None


def test_complete_and_reopen(w1: Client, record: str) -> None:
    claim = w1.claim(record, "remediation")
    completed = w1.complete(record, "remediation", claim.claim_id, {"moved": 4}, "actions_taken@1")
    assert (completed.version, completed.epoch) == (1, claim.epoch)
    assert w1.get(record)["remediation"].value == {"moved": 4}
    assert w1.reopen(record, "remediation", "not all").version == 2


def test_claim_next(w1: Client, w2: Client, deployment: Deployment) -> None:
    name = deployment.own_class()
    assert w1.claim_next(name, "remediation") is None
    record = deployment.own_record(name)
    assert w1.claim_next(name, "remediation", filter={"status": "resolved"}) is None
    claim = w1.claim_next(name, "remediation", lease_seconds=30, filter={"status": "open"})
    assert claim is not None
    assert (claim.record, claim.lease_seconds) == (record, 30)
    assert w2.claim_next(name, "remediation") is None


def test_force_release(admin: Client, diagnoser: Client, w1: Client) -> None:
    admin.class_apply("overridable", OVERRIDABLE)
    diagnoser.create("overridable/a")
    claim = w1.claim("overridable/a", "job")
    taken = diagnoser.force_release("overridable/a", "job", claim.epoch, "stuck")
    assert taken.released_from == "apikey:remediator/worker-1"
    assert w1.history("overridable/a", "job").history[-1].reason == "stuck"


def test_checkpoints(w1: Client, diagnoser: Client, record: str) -> None:
    nothing = w1.checkpoint_load(record)
    assert (nothing.document, nothing.record_version) == (None, 0)
    first = w1.checkpoint_save(record, CHECKPOINT, seen_version=0)
    second = w1.checkpoint_save(record, {**CHECKPOINT, "progress": "all"}, role="remediator")
    assert (first.checkpoint_id, second.checkpoint_id) == (1, 2)
    diagnoser.write(record, "planned_action", "stop", 0, "node-4 is down")
    loaded = w1.checkpoint_load(record)
    assert loaded.document is not None
    assert loaded.document["progress"] == "all"
    assert [(c.field, c.version, c.evidence) for c in loaded.changed_fields] == [("planned_action", 1, "node-4 is down")]
    assert w1.checkpoint_load(record, "remediator", checkpoint_id=1).document == CHECKPOINT
    page = w1.checkpoint_list(record, page_size=1)
    assert [saved.checkpoint_id for saved in page.checkpoints] == [2]
    assert w1.checkpoint_list(record, "remediator", after=page.next).checkpoints[0].checkpoint_id == 1


def test_history_and_blame(w1: Client, diagnoser: Client, record: str) -> None:
    diagnoser.write(record, "hypotheses", {"cause": "lag"}, 0)
    diagnoser.write(record, "planned_action", "fail over", 0, "hypotheses@1")
    w1.claim(record, "remediation")
    assert [row.op for row in w1.history_all(record, page_size=2)] == ["create", "write", "write", "claim"]
    assert [row.op for row in w1.history_all(record, newest_first=True)] == ["claim", "write", "write", "create"]
    assert [row.value for row in w1.history(record, "hypotheses", with_values=False).history] == [None]
    assert w1.history(record, after=2).history[0].epoch == 1
    rows = {row.field: row for row in w1.blame(record).blame}
    assert rows["planned_action"].points_to is not None
    assert rows["planned_action"].points_to.value == {"cause": "lag"}
    assert rows["hypotheses"].key == "cause"
    assert [row.field for row in w1.blame(record, "status").blame] == ["status"]


def test_the_manuals_crash(deployment: Deployment, w1: Client, w2: Client, diagnoser: Client) -> None:
    R = deployment.own_record()  # noqa: N806  the manual's name
    diagnoser.write(R, "planned_action", "evict all pods", 0, "node-7 fails its health checks")

    c = w1.claim(R, "remediation", lease_seconds=3)
    w1.checkpoint_save(R, {"goal": "drain node-7",
                           "progress": "cordoned; 4 of 11 pods evicted",
                           "decisions": "evict in batches of 4",
                           "open_questions": "none"})  # fmt: skip

    assert c.owner == "apikey:remediator/worker-1"
    with pytest.raises(Held) as held:
        w2.claim(R, "remediation")
    assert held.value.owner == "apikey:remediator/worker-1"
    assert held.value.retry_after_seconds in (1, 2, 3)
    assert held.value.expires_at == c.expires_at
    diagnoser.write(R, "planned_action", "leave them", 1, "eviction caused a second outage on node-4")

    def claimed() -> str | None:
        try:
            return w2.claim(R, "remediation").took_over_from
        except Held:
            return None

    assert until("worker 2 takes over", claimed) == "apikey:remediator/worker-1"
    assert not c.live
    woken = w2.checkpoint_load(R)
    assert woken.document is not None
    assert woken.document["progress"] == "cordoned; 4 of 11 pods evicted"
    assert [change.field for change in woken.changed_fields] == ["planned_action"]


def test_the_wrong_address_is_told(deployment: Deployment) -> None:
    with Client(f"{deployment.server}/healthz", "w1-token") as client, pytest.raises(NotFound):
        client.whoami()
    with Client(f"{deployment.server}/metrics?", "w1-token") as client, pytest.raises(UnexpectedAnswer):
        client.whoami()
