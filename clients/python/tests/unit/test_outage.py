"""The loop while the server is away."""

from __future__ import annotations

import httpx
import pytest

from kslate import Agent, Append, Fields, run

from .fake import RECORD, FakeServer, appended, granted, lease_lost, ok

NOTHING = ok(record=None)
NO_CHECKPOINT = ok(record=RECORD, role="remediator", document=None, record_version=0, changed_fields=[])
RECORD_READ = ok(record=RECORD, record_version=4, created_by="apikey:diagnoser", created_at="2026-11-29T14:40:12Z", fields=[])
AWAY = httpx.ConnectError("refused")


class Enough(Exception):
    """The test has seen what it wanted to see."""


def enough(request: httpx.Request) -> httpx.Response:
    raise Enough


def test_an_outage_is_waited_out_with_growing_pauses() -> None:
    server = FakeServer(AWAY, AWAY, AWAY, NOTHING, enough)
    with pytest.raises(Enough):
        run(
            Agent(lambda fields: None),
            server.client(retry_for=0),
            class_name="incidents",
            claim_field="remediation",
            poll_seconds=4,
        )
    for wait, longest in zip(server.clock.waits, (4, 8, 16), strict=False):
        assert longest / 2 <= wait <= longest
    assert server.asked == ["claim"] * 5


def test_a_claim_is_asked_for_anew_with_a_new_key_after_giving_up() -> None:
    server = FakeServer(AWAY, enough)
    with pytest.raises(Enough):
        run(Agent(lambda fields: None), server.client(retry_for=0), class_name="incidents", claim_field="remediation")
    assert len({request.headers["Idempotency-Key"] for request in server.requests}) == 2


def test_what_could_not_be_written_is_not_forgotten_silently() -> None:
    """The append is given up; the task is given back with one try, since the server is away; then the loop goes on."""
    server = FakeServer(granted(3600), NO_CHECKPOINT, RECORD_READ, httpx.ReadError("reset"), AWAY, enough)
    with pytest.raises(Enough):
        run(
            Agent(lambda fields: Append("actions_taken", "x")),
            server.client(retry_for=0),
            class_name="incidents",
            claim_field="remediation",
        )
    assert server.asked == ["claim", "checkpoint", "inc-1", "entries", "release", "claim"]
    assert server.body(4)["reason"] == "ConnectionFailed in the work"


def test_an_append_behind_a_lost_answer_is_sent_under_the_same_key() -> None:
    server = FakeServer(granted(3600), NO_CHECKPOINT, RECORD_READ, httpx.ReadError("reset"), appended(), lease_lost(), enough)
    with pytest.raises(Enough):
        run(
            Agent(lambda fields: Append("actions_taken", "x")),
            server.client(),
            class_name="incidents",
            claim_field="remediation",
        )
    assert server.asked[3:5] == ["entries", "entries"]
    assert server.requests[3].headers["Idempotency-Key"] == server.requests[4].headers["Idempotency-Key"]


def test_a_lease_that_runs_out_while_the_server_is_away_is_lost() -> None:
    server = FakeServer(granted(3), NO_CHECKPOINT, RECORD_READ, httpx.ReadError("reset"), httpx.ReadError("reset"), enough)

    def decide(fields: Fields) -> Append:
        server.takes = 2
        return Append("actions_taken", "x")

    with pytest.raises(Enough):
        run(Agent(decide), server.client(), class_name="incidents", claim_field="remediation")
    assert server.asked[-1] == "claim"
    assert "release" not in server.asked
