"""Each error once, from a real answer."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from support.deployment import Deployment, script
from support.waiting import until

import kslate
from kslate import Client
from kslate._request import Call


def send(client: Client, method: str, path: str, **more: Any) -> Any:
    """What no method of the client would send."""
    return client._transport.send(Call(method, path, **more))


def test_malformed(w1: Client, record: str) -> None:
    with pytest.raises(kslate.Malformed) as refused:
        w1.claim(record, "remediation", lease_seconds=0)
    assert (refused.value.status, refused.value.path, refused.value.record) == (400, "/lease_seconds", record)
    with pytest.raises(kslate.Malformed):
        w1.append(record, "actions_taken", "half a character: \ud83d")


def test_unauthenticated(deployment: Deployment) -> None:
    with Client(deployment.server, "nobody's") as client, pytest.raises(kslate.Unauthenticated) as refused:
        client.whoami()
    assert refused.value.status == 401
    assert refused.value.request_id


def test_scope_denied(w1: Client, record: str) -> None:
    with pytest.raises(kslate.ScopeDenied) as refused:
        w1.write(record, "planned_action", "mine", 0, "because")
    assert (refused.value.needs_one_of, refused.value.roles_held) == (["diagnoser"], ["remediator"])
    assert refused.value.field == "planned_action"


def test_not_found(w1: Client, record: str) -> None:
    with pytest.raises(kslate.NotFound) as refused:
        w1.get(f"{record}-not")
    assert refused.value.record == f"{record}-not"
    with pytest.raises(kslate.NotFound) as refused:
        w1.claim(record, "mood")
    assert refused.value.field == "mood"


def test_method_and_media_type(admin: Client, w1: Client, record: str) -> None:
    with pytest.raises(kslate.MethodNotAllowed):
        send(w1, "DELETE", f"/v1/records/{record}")
    with pytest.raises(kslate.UnsupportedMediaType):
        send(w1, "POST", f"/v1/records/{record}/fields/remediation/claim", source="yaml: no")


def test_payload_too_large(w1: Client, record: str) -> None:
    with pytest.raises(kslate.PayloadTooLarge):
        w1.append(record, "actions_taken", "x" * (1 << 20))


def test_already_exists(diagnoser: Client, record: str) -> None:
    with pytest.raises(kslate.AlreadyExists) as refused:
        diagnoser.create(record, {"hypotheses": "mine"})
    assert refused.value.record_version == 0


def test_version_conflict(diagnoser: Client, record: str) -> None:
    diagnoser.write(record, "hypotheses", "lag", 0)
    with pytest.raises(kslate.VersionConflict) as refused:
        diagnoser.write(record, "hypotheses", "deploy", 0)
    conflict = refused.value
    assert (conflict.field, conflict.expected_version, conflict.current_version) == ("hypotheses", 0, 1)
    assert (conflict.value, conflict.author, conflict.evidence) == ("lag", "apikey:diagnoser", None)
    with pytest.raises(kslate.VersionConflict) as refused:
        diagnoser.write_many(record, [{"field": "hypotheses", "value": 1, "expected_version": 7}])
    assert refused.value.conflicts is not None
    assert refused.value.conflicts[0]["expected_version"] == 7


def test_held(w1: Client, w2: Client, record: str) -> None:
    claim = w1.claim(record, "remediation", lease_seconds=60)
    with pytest.raises(kslate.Held) as refused:
        w2.claim(record, "remediation")
    assert (refused.value.owner, refused.value.expires_at) == (claim.owner, claim.expires_at)
    assert refused.value.retry_after_seconds in (59, 60)


def test_lease_lost(w1: Client, w2: Client, record: str) -> None:
    claim = w1.claim(record, "remediation")
    claim.release()
    theirs = w2.claim(record, "remediation")
    with pytest.raises(kslate.LeaseLost) as refused:
        w1.append(record, "actions_taken", "too late", claim_id=claim.claim_id)
    assert (refused.value.owner, refused.value.reason) == (theirs.owner, "released")


def test_a_field_bound_to_another_task_names_that_task(
    deployment: Deployment, admin: Client, diagnoser: Client, w1: Client
) -> None:
    name = deployment.apply_class("""
class: two-tasks
roles: { worker: ["apikey:remediator/*"], boss: [apikey:diagnoser] }
create: [boss]
fields:
  move: { mode: task, write: [worker] }
  check: { mode: task, write: [worker] }
  cursor: { mode: lww, write: [worker], requires_claim: move }
""")
    diagnoser.create(f"{name}/a")
    check = w1.claim(f"{name}/a", "check")
    with pytest.raises(kslate.LeaseLost) as refused:
        check.write("cursor", 1)
    assert refused.value.field != "check"
    assert check.live


def test_completed_and_not_completed(w1: Client, w2: Client, record: str) -> None:
    with pytest.raises(kslate.NotCompleted) as not_yet:
        w1.reopen(record, "remediation")
    assert not_yet.value.version == 0
    w1.claim(record, "remediation").complete("done")
    with pytest.raises(kslate.Completed) as done:
        w2.claim(record, "remediation")
    assert (done.value.author, done.value.version) == ("apikey:remediator/worker-1", 1)
    assert done.value.completed_at is not None


def test_idempotency_conflict(w1: Client, record: str) -> None:
    w1.append(record, "actions_taken", "x", idempotency_key="k")
    with pytest.raises(kslate.IdempotencyConflict):
        w1.append(record, "actions_taken", "y", idempotency_key="k")


def test_invalid_checkpoint(w1: Client, diagnoser: Client, record: str) -> None:
    with pytest.raises(kslate.InvalidCheckpoint) as sections:
        w1.checkpoint_save(record, {"goal": "drain node-7"})
    assert sections.value.message == "missing required section(s): decisions, progress, open_questions"
    assert sections.value.field is None
    with pytest.raises(kslate.InvalidCheckpoint) as gate:
        diagnoser.write(record, "status", "resolved", 1)
    assert gate.value.field == "status"


def test_invalid_value_and_evidence_required(diagnoser: Client, record: str) -> None:
    with pytest.raises(kslate.InvalidValue) as invalid:
        diagnoser.write(record, "status", "closed", 1)
    assert invalid.value.path == ""
    with pytest.raises(kslate.EvidenceRequired):
        diagnoser.write(record, "planned_action", "go", 0)


def test_invalid_class(admin: Client) -> None:
    with pytest.raises(kslate.InvalidClass) as refused:
        admin.class_apply("odd", "class: odd\nroles: { a: [apikey:a] }\nfields: { x: { mode: csa, write: [a] } }\n")
    assert refused.value.class_name == "odd"
    assert refused.value.faults
    assert "csa" in refused.value.faults[0]["message"]


# What a server says that is in trouble


class Trouble:
    """A deployment of its own, whose database a superuser gets his hands on."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.record = deployment.own_record()
        self._psql = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", script("cluster", "url", str(deployment.folder))]

    def client(self, retry_for: float = 0) -> Client:
        return Client(self.deployment.server, "w1-token", retry_for=retry_for)

    def sql(self, text: str) -> str:
        return subprocess.run([*self._psql, "-c", text], check=True, capture_output=True, text=True).stdout.strip()

    @contextmanager
    def lock(self, statement: str) -> Iterator[None]:
        """The statement's locks, held by a session of its own."""
        with subprocess.Popen(self._psql, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
            assert session.stdin
            assert session.stdout
            session.stdin.write(f"begin; {statement};\n\\echo locked\n")
            session.stdin.flush()
            while session.stdout.readline() != "locked\n":
                pass
            yield
            session.stdin.close()

    @contextmanager
    def meddling(self, statement: str) -> Iterator[None]:
        """Whoever saves a checkpoint meets the statement, by a trigger of the superuser's."""
        self.sql(
            "create function public.meddle() returns trigger language plpgsql security definer as "
            f"$$ begin {statement}; return new; end $$; "
            "create trigger meddle after insert on kslate.checkpoint execute function public.meddle()"
        )
        yield
        self.sql("drop trigger meddle on kslate.checkpoint; drop function public.meddle()")


@pytest.fixture(scope="module")
def trouble() -> Iterator[Trouble]:
    with Deployment() as deployment:
        yield Trouble(deployment)


def test_busy(trouble: Trouble) -> None:
    locked = trouble.lock(f"select from kslate.record where record = '{trouble.record}' for update")
    with locked, trouble.client() as client, pytest.raises(kslate.Busy) as busy:
        client.append(trouble.record, "actions_taken", "x")
    assert busy.value.retry_after_seconds == 1


@pytest.mark.parametrize(
    ("statement", "expected", "status"),
    [
        ("perform pg_sleep(60)", kslate.Timeout, 504),
        ("delete from kslate.history", kslate.Immutable, 409),
        ("raise division_by_zero", kslate.Internal, 500),
    ],
)
def test_a_database_that_somebody_meddles_with(
    trouble: Trouble, statement: str, expected: type[kslate.KslateError], status: int
) -> None:
    with trouble.meddling(statement), trouble.client() as client, pytest.raises(expected) as refused:
        client.checkpoint_save(trouble.record, {"goal": "", "decisions": "", "progress": "", "open_questions": ""})
    assert type(refused.value) is expected
    assert refused.value.status == status
    assert refused.value.request_id


def test_unavailable_then_no_server_then_all_is_well(trouble: Trouble) -> None:
    trouble.deployment.stop_database()
    with trouble.client() as client:
        with pytest.raises(kslate.Unavailable) as unavailable:
            client.append(trouble.record, "actions_taken", "x", idempotency_key="k")
        assert unavailable.value.retry_after_seconds
        trouble.deployment.stop_server()
        with pytest.raises(kslate.ConnectionFailed) as failed:
            client.append(trouble.record, "actions_taken", "x", idempotency_key="k")
        assert failed.value.sent is False
        trouble.deployment.start_database()
        trouble.deployment.start_server()

        def appended() -> int:
            return client.append(trouble.record, "actions_taken", "x", idempotency_key="k").version

        assert until("the append is done", appended) == 1
        assert client.get(trouble.record)["actions_taken"].version == 1
