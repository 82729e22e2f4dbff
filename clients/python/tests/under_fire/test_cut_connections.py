"""A proxy cuts connections after the request was delivered: what the client sends again is done once, a refusal is final."""

from __future__ import annotations

import itertools

import pytest
from support.deployment import Deployment
from support.proxy import Fate, Proxy

from kslate import Client, ConnectionFailed, Held, VersionConflict


def cutting(port: int, count: int, fate: Fate, ending: str) -> Proxy:
    """A proxy that cuts the first `count` requests whose path ends so, and passes on all else."""
    numbers = itertools.count(1)

    def decide(method: str, path: str) -> Fate:
        return fate if path.endswith(ending) and next(numbers) <= count else Fate.PASS

    return Proxy(port, decide)


@pytest.mark.parametrize("fate", [Fate.CUT_AFTER_DELIVERY, Fate.CUT_AFTER_ANSWER])
def test_an_append_lands_once(deployment: Deployment, record: str, fate: Fate) -> None:
    proxy = cutting(deployment.port, 3, fate, "/entries")
    with proxy, Client(proxy.server, "w1-token") as client:
        told = client.append(record, "actions_taken", "uncordoned node-7")
        sent = proxy.requests("POST", "/entries")
    assert [seen.fate for seen in sent] == [fate, fate, fate, Fate.PASS]
    assert len({seen.headers["idempotency-key"] for seen in sent}) == 1
    entries = deployment.call("GET", f"/v1/records/{record}/fields/actions_taken/entries")["entries"]
    assert [(entry["seq"], entry["value"]) for entry in entries] == [(1, "uncordoned node-7")]
    assert told.version == 1
    assert told.record_version == entries[0]["record_version"]


def test_a_claim_is_granted_once(deployment: Deployment, record: str) -> None:
    proxy = cutting(deployment.port, 1, Fate.CUT_AFTER_ANSWER, "/claim")
    with proxy, Client(proxy.server, "w1-token") as client:
        claim = client.claim(record, "remediation")
        client.complete(record, "remediation", claim.claim_id)
    assert claim.epoch == 1
    ops = [row["op"] for row in deployment.call("GET", f"/v1/records/{record}/history")["history"]]
    assert ops == ["create", "claim", "complete"]


def test_a_conflict_is_never_sent_again(deployment: Deployment, record: str) -> None:
    with Proxy(deployment.port) as proxy, Client(proxy.server, "w1-token") as client:
        with pytest.raises(VersionConflict):
            client.write(record, "status", "mitigating", expected_version=7)
        assert [seen.status for seen in proxy.requests("PUT", "/fields/status")] == [409]
        client.claim(record, "remediation")
        with pytest.raises(Held):
            client.claim(record, "remediation")
        assert [seen.status for seen in proxy.requests("POST", "/claim")] == [200, 409]


def test_a_conflict_behind_a_lost_answer_is_told(deployment: Deployment, record: str) -> None:
    """Refusals are not remembered under a key: the second sending is refused anew, and that is the end of it."""
    proxy = cutting(deployment.port, 1, Fate.CUT_AFTER_ANSWER, "/fields/status")
    with proxy, Client(proxy.server, "w1-token") as client:
        with pytest.raises(VersionConflict) as refused:
            client.write(record, "status", "mitigating", expected_version=7)
        assert [seen.status for seen in proxy.requests("PUT", "/fields/status")] == [409, 409]
    assert refused.value.current_version == 1


def test_without_patience_a_cut_is_told_at_once(deployment: Deployment, record: str) -> None:
    proxy = cutting(deployment.port, 9, Fate.CUT_AFTER_ANSWER, "/entries")
    with proxy, Client(proxy.server, "w1-token", retry_for=0) as client:
        with pytest.raises(ConnectionFailed) as failed:
            client.append(record, "actions_taken", "uncordoned node-7")
        assert len(proxy.requests("POST", "/entries")) == 1
    assert failed.value.sent
