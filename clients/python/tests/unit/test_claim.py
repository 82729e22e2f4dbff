"""The claim object: its deadline, the thread that keeps it, and how it is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable

import httpx
import pytest

import kslate
from kslate import Claim, LeaseLost
from kslate._clock import Clock

from .fake import CLAIM_ID, RECORD, FakeServer, appended, completed, granted, lease_lost, refusal, released, renewed


def claimed(server: FakeServer) -> Claim:
    return server.client().claim(RECORD, "remediation")


def keep(claim: Claim) -> None:
    """What the thread does, in this one, until the claim is lost."""
    claim._keep()


def test_a_claim_is_a_plain_value_until_it_is_kept() -> None:
    before = threading.active_count()
    server = FakeServer(granted(took_over_from="apikey:remediator/worker-2"))
    claim = claimed(server)
    assert (claim.record, claim.field, claim.claim_id, claim.epoch) == (RECORD, "remediation", CLAIM_ID, 2)
    assert (claim.owner, claim.role) == ("apikey:remediator/worker-1", "remediator")
    assert (claim.took_over_from, claim.lease_seconds, claim.record_version) == ("apikey:remediator/worker-2", 30, 4)
    assert claim.expires_at == claim.claimed_at
    assert claim.live
    assert threading.active_count() == before
    assert len(server.requests) == 1


def test_the_deadline_counts_from_the_sending() -> None:
    server = FakeServer(granted(30), takes=4)
    claim = claimed(server)
    assert claim.seconds_left == 26
    server.clock.time += 25.9
    assert claim.live
    server.clock.time += 0.2
    assert not claim.live
    assert claim.lost.is_set()
    assert claim.lost.wait()
    assert claim.seconds_left == 0


def test_it_renews_at_a_third_of_the_lease() -> None:
    server = FakeServer(granted(30), renewed(30), renewed(30), renewed(60), renewed(60), lease_lost())
    keep(claimed(server))
    assert server.clock.waits == [10, 10, 10, 20, 20]
    assert server.asked == ["claim", *["renew"] * 5]
    assert server.body(1) == {"claim_id": CLAIM_ID}


def test_a_slow_renewal_counts_from_its_sending() -> None:
    server = FakeServer(granted(30), renewed(30), renewed(30), lease_lost(), takes=2)
    keep(claimed(server))
    assert server.clock.waits == [8, 8, 8]


def test_a_failed_renewal_is_tried_until_the_deadline_and_no_longer() -> None:
    server = FakeServer(granted(30), httpx.ReadTimeout("no answer"))
    claim = claimed(server)
    keep(claim)
    assert len(server.requests) > 5
    assert server.clock.time == pytest.approx(1030)
    assert claim.lost.is_set()
    with pytest.raises(LeaseLost) as lost:
        claim.ensure_live()
    assert lost.value.reason == "unconfirmed"
    assert lost.value.status is None
    assert "load the checkpoint" in lost.value.message


@pytest.mark.parametrize(
    "failure",
    [
        refusal(503, "UNAVAILABLE", retry_after_seconds=1),
        refusal(401, "UNAUTHENTICATED"),
        refusal(500, "INTERNAL"),
        httpx.Response(502),
    ],
)
def test_a_renewal_that_fails_for_a_while_saves_the_lease(failure: httpx.Response) -> None:
    server = FakeServer(granted(30), failure, failure, renewed(30), lease_lost())
    claim = claimed(server)
    keep(claim)
    assert server.asked == ["claim", *["renew"] * 4]
    with pytest.raises(LeaseLost) as lost:
        claim.ensure_live()
    assert (lost.value.reason, lost.value.owner) == ("taken_over", "apikey:remediator/worker-2")


@pytest.mark.parametrize(("lease", "patience"), [(1, 0.5), (3, 0.75), (20, 5), (3600, 10)])
def test_one_renewal_cannot_eat_the_lease(lease: int, patience: float) -> None:
    seen: list[dict[str, float]] = []

    def renewal(request: httpx.Request) -> httpx.Response:
        seen.append(request.extensions["timeout"])
        return lease_lost()

    keep(claimed(FakeServer(granted(lease), renewal)))
    assert sum(seen[0].values()) == pytest.approx(patience)


def test_a_claim_under_a_key_of_the_callers_is_asked_for_once_more() -> None:
    server = FakeServer(granted(30), renewed(30))
    claim = server.client().claim(RECORD, "remediation", idempotency_key="job-7")
    assert claim.live
    assert server.asked == ["claim", "renew"]
    # The first answer again, of a claim that is over by now.
    server = FakeServer(granted(30), lease_lost("released"))
    with pytest.raises(LeaseLost, match="LEASE_LOST"):
        server.client().claim(RECORD, "remediation", idempotency_key="job-7")


def test_an_answer_after_the_end_does_not_bring_the_claim_back() -> None:
    server = FakeServer(granted(30), renewed(30), appended())
    claim = claimed(server)
    server.takes = 31
    keep(claim)
    assert not claim.live
    with pytest.raises(LeaseLost):
        claim.append("actions_taken", "x")
    assert server.asked == ["claim", "renew"]


@pytest.mark.parametrize(
    "work",
    [
        lambda claim: claim.write("status", "mitigating", 1),
        lambda claim: claim.write_many([{"field": "status", "value": "open"}]),
        lambda claim: claim.append("actions_taken", "x"),
        lambda claim: claim.checkpoint_save({}),
        lambda claim: claim.renew(),
        lambda claim: claim.complete(),
        lambda claim: claim.release(),
    ],
)
def test_nothing_is_sent_through_a_lost_claim(work: Callable[[Claim], object]) -> None:
    server = FakeServer(granted(30), appended())
    claim = claimed(server)
    server.clock.time += 31
    with pytest.raises(LeaseLost):
        work(claim)
    assert len(server.requests) == 1


def test_a_pending_write_can_still_be_put_to_the_server() -> None:
    server = FakeServer(granted(30), lease_lost())
    client = server.client()
    claim = client.claim(RECORD, "remediation")
    server.clock.time += 31
    with pytest.raises(LeaseLost) as lost:
        client.append(claim.record, "actions_taken", "x", claim_id=claim.claim_id)
    assert lost.value.status == 409
    assert server.body(1)["claim_id"] == CLAIM_ID


def test_the_claim_id_goes_into_everything_done_through_it() -> None:
    server = FakeServer(granted(30), appended())
    claim = claimed(server)
    claim.append("actions_taken", "x")
    for work in (lambda: claim.write("status", "open"), lambda: claim.checkpoint_save({}), lambda: claim.write_many([])):
        with pytest.raises(kslate.UnexpectedAnswer):  # the answer of append, to another question
            work()
    assert [server.body(number)["claim_id"] for number in range(1, 5)] == [CLAIM_ID] * 4
    assert server.requests[3].url.params["role"] == "remediator"


def test_the_servers_refusal_ends_the_claim_and_is_told_once() -> None:
    server = FakeServer(granted(30), lease_lost("force_released"))
    claim = claimed(server)
    told: list[LeaseLost] = []
    claim.on_lost = told.append
    for _ in range(3):
        with pytest.raises(LeaseLost) as lost:
            claim.append("actions_taken", "x")
        assert lost.value.reason == "force_released"
    server.clock.time += 31
    assert claim.lost.is_set()
    assert [lost.reason for lost in told] == ["force_released"]
    assert len(server.requests) == 2


def test_a_field_of_another_task_ends_nothing() -> None:
    claim = claimed(FakeServer(granted(30), lease_lost("not_claimed", field="verification")))
    with pytest.raises(LeaseLost):
        claim.append("findings", "x")
    assert claim.live


def test_a_callback_that_raises_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    claim = claimed(FakeServer(granted(30), lease_lost()))
    claim.on_lost = lambda lost: 1 / 0
    with pytest.raises(LeaseLost):
        claim.append("actions_taken", "x")
    assert "on_lost failed" in caplog.text


def test_a_change_that_outlives_its_claim_is_not_sent_again() -> None:
    server = FakeServer(granted(30), httpx.ReadError("reset"), takes=20)
    with pytest.raises(LeaseLost, match="whether it was done is unknown") as lost:
        claimed(server).append("actions_taken", "x")
    assert isinstance(lost.value.__cause__, kslate.ConnectionFailed)
    assert server.asked == ["claim", "entries"]


def test_a_shorter_lease_is_believed_even_if_its_answer_is_lost() -> None:
    server = FakeServer(granted(30), httpx.ReadError("reset"))
    claim = server.client(retry_for=0).claim(RECORD, "remediation")
    with pytest.raises(kslate.ConnectionFailed):
        claim.renew(lease_seconds=5)
    assert claim.seconds_left <= 5


def test_a_renewal_by_hand_moves_the_thread_too() -> None:
    server = FakeServer(granted(30), renewed(6), renewed(6), lease_lost())
    claim = claimed(server)
    claim.renew(lease_seconds=6)
    claim._wake.clear()
    keep(claim)
    assert server.clock.waits == [2, 2]


def threads_of_claims() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("kslate-renew")]


def with_real_clock(server: FakeServer) -> Claim:
    client = server.client()
    client._transport.clock = Clock()
    return client.claim(RECORD, "remediation")


def test_the_block_keeps_the_claim_and_gives_it_back() -> None:
    server = FakeServer(granted(3600), released())
    with with_real_clock(server) as claim:
        assert threads_of_claims() == [f"kslate-renew-{RECORD}"]
        assert claim.keep_alive() is claim
        assert len(threads_of_claims()) == 1
    assert threads_of_claims() == []
    assert server.asked == ["claim", "release"]
    assert server.body(1) == {"claim_id": CLAIM_ID}
    assert not claim.live
    assert not claim.lost.is_set()


def test_an_exception_is_the_reason_of_the_release() -> None:
    server = FakeServer(granted(3600), released())
    with pytest.raises(ZeroDivisionError), with_real_clock(server):
        _ = 1 / 0
    assert server.body(1)["reason"] == "ZeroDivisionError in the work"
    assert threads_of_claims() == []


def test_a_completed_claim_is_not_given_back() -> None:
    server = FakeServer(granted(3600), completed())
    with with_real_clock(server) as claim:
        claim.complete("done", "actions_taken@1")
        assert threads_of_claims() == []
        assert not claim.live
    assert server.asked == ["claim", "complete"]
    assert server.body(1) == {"claim_id": CLAIM_ID, "value": "done", "evidence": "actions_taken@1"}


def test_a_lost_claim_is_not_given_back() -> None:
    server = FakeServer(granted(3600), lease_lost())
    with with_real_clock(server) as claim, pytest.raises(LeaseLost):
        claim.append("actions_taken", "x")
    assert server.asked == ["claim", "entries"]
    assert threads_of_claims() == []


@pytest.mark.parametrize("refused", [lease_lost("lapsed"), refusal(403, "SCOPE_DENIED")])
def test_a_release_that_fails_does_not_hide_the_work(refused: httpx.Response, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError), with_real_clock(FakeServer(granted(3600), refused)):
        _ = 1 / 0
    assert "could not be released" in caplog.text


def test_a_renewal_that_meets_the_completed_claim_is_no_loss() -> None:
    renewing, completing = threading.Event(), threading.Event()

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/renew"):
            renewing.set()
            assert completing.wait(10)
            return lease_lost("completed")
        completing.set()
        keeper = claim._keeper
        assert keeper is not None
        keeper.join(10)
        return completed()

    server = FakeServer(granted(3600), answer)
    claim = with_real_clock(server)
    claim._renew_at = 0
    with claim:
        assert renewing.wait(10)
        claim.complete("done")
    assert not claim.lost.is_set()


def test_lost_wakes_whoever_waits_for_it() -> None:
    server = FakeServer(granted(3600), lease_lost())
    claim = with_real_clock(server)
    claim._renew_at = 0
    with claim:
        assert claim.lost.wait(10)


def test_lost_is_set_by_the_clock_though_the_thread_hangs() -> None:
    hang = threading.Event()

    def hanging(request: httpx.Request) -> httpx.Response:
        hang.wait(10)
        return lease_lost()

    claim = with_real_clock(FakeServer(granted(1), hanging))
    claim._renew_at = 0
    claim.keep_alive()
    assert claim.lost.wait(10)
    assert not hang.is_set()
    hang.set()
    claim.let_go()
    assert threads_of_claims() == []
