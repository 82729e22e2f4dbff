"""What is sent again, what never is, and what an answer is taken for."""

from __future__ import annotations

import logging
import threading

import httpx
import pytest

import kslate
from kslate import Client

from .fake import RECORD, FakeClock, FakeServer, appended, granted, ok, refusal, renewed
from .test_errors import CODES

ME = ok(identity="apikey:remediator/worker-1", admin=False, roles={})
HTML = "<html>Bad Gateway</html>"

PASSING = [
    refusal(503, "BUSY", retry_after_seconds=1),
    refusal(503, "UNAVAILABLE", retry_after_seconds=1),
    refusal(504, "TIMEOUT"),
    httpx.Response(502, html=HTML),
    httpx.Response(429),
    httpx.Response(429, json={"error": "Too Many Requests", "message": "rate limit exceeded"}),
    httpx.Response(502, json={"status": 502, "error": "Bad Gateway", "message": "upstream"}),
    httpx.ConnectError("refused"),
    httpx.ReadTimeout("no answer"),
    httpx.RemoteProtocolError("closed without an answer"),
]


def name_of(answer: object) -> str:
    return str(answer.json()["error"] if isinstance(answer, httpx.Response) and b"error" in answer.content else answer)


@pytest.mark.parametrize("passing", PASSING, ids=name_of)
def test_a_change_is_sent_again_under_one_key(passing: httpx.Response | Exception) -> None:
    server = FakeServer(passing, passing, appended())
    assert server.client().append(RECORD, "actions_taken", "x").version == 1
    keys = [request.headers["Idempotency-Key"] for request in server.requests]
    assert len(keys) == 3
    assert len(set(keys)) == 1
    assert len({request.content for request in server.requests}) == 1


def test_each_call_has_its_own_key_and_the_callers_is_used() -> None:
    server = FakeServer(appended())
    client = server.client()
    client.append(RECORD, "actions_taken", "x")
    client.append(RECORD, "actions_taken", "x")
    client.append(RECORD, "actions_taken", "x", idempotency_key="mine")
    keys = [request.headers["Idempotency-Key"] for request in server.requests]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"
    with pytest.raises(kslate.Malformed):
        client.append(RECORD, "actions_taken", "x", idempotency_key="ü")


def test_reads_and_renewals_are_sent_again_without_a_key() -> None:
    server = FakeServer(httpx.ReadError("lost"), ME, httpx.ReadError("lost"), renewed())
    client = server.client()
    client.whoami()
    client.renew(RECORD, "remediation", "an id")
    assert len(server.requests) == 4
    assert not any("Idempotency-Key" in request.headers for request in server.requests)


FINAL = [code for code, (_, error, _) in CODES.items() if not issubclass(error, kslate.Transient)]


@pytest.mark.parametrize("code", FINAL)
def test_a_refusal_is_never_sent_again(code: str) -> None:
    server = FakeServer(refusal(CODES[code][0], code), appended())
    with pytest.raises(CODES[code][1]):
        server.client().append(RECORD, "actions_taken", "x")
    assert len(server.requests) == 1


def test_retry_after_is_honoured_and_the_pauses_grow_and_differ() -> None:
    server = FakeServer(refusal(503, "BUSY", retry_after_seconds=3))
    with pytest.raises(kslate.Busy):
        server.client().whoami()
    assert all(wait >= 3 for wait in server.clock.waits)
    jitter = [wait - 3 for wait in server.clock.waits]
    assert len(set(jitter)) == len(jitter)
    assert all(extra <= min(5.0, 0.2 * 2**number) for number, extra in enumerate(jitter))


def test_a_proxys_retry_after_is_honoured_too() -> None:
    server = FakeServer(httpx.Response(503, html=HTML, headers={"Retry-After": "7"}), ME)
    server.client().whoami()
    assert server.clock.waits[0] >= 7


@pytest.mark.parametrize("retry_for", [0, 10, 30])
def test_the_time_for_all_tries_is_bounded(retry_for: float) -> None:
    server = FakeServer(httpx.ReadTimeout("no answer"))
    with pytest.raises(kslate.ConnectionFailed):
        server.client(retry_for=retry_for).whoami()
    assert server.clock.time <= 1000 + retry_for
    assert (len(server.requests) == 1) is (retry_for == 0)


def test_each_further_try_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    server = FakeServer(httpx.ConnectError("refused"), appended())
    with caplog.at_level(logging.WARNING, "kslate"):
        server.client().append(RECORD, "actions_taken", "x")
    (line,) = caplog.messages
    assert line.startswith(f"POST /v1/records/{RECORD}/fields/actions_taken/entries failed: no connection")
    assert "sending it again in" in line
    assert line.endswith("(under the same idempotency key)")


def test_a_stop_ends_the_waiting() -> None:
    server = FakeServer(httpx.ConnectError("refused"))
    stop = threading.Event()
    stop.set()
    with pytest.raises(kslate.ConnectionFailed):
        server.client()._twin(stop=stop).whoami()
    assert len(server.requests) == 1


def test_whether_it_was_sent_is_told() -> None:
    for failure, sent in ((httpx.ConnectError("refused"), False), (httpx.ReadError("reset"), True)):
        with pytest.raises(kslate.ConnectionFailed) as failed:
            FakeServer(failure).client(retry_for=0).whoami()
        assert failed.value.sent is sent


@pytest.mark.parametrize(
    ("first", "counted_from"),
    [
        (httpx.ConnectError("refused"), "second"),
        (refusal(503, "BUSY", retry_after_seconds=1), "second"),
        (httpx.ReadTimeout("no answer"), "first"),
        (refusal(503, "UNAVAILABLE", retry_after_seconds=1), "first"),
        (refusal(504, "TIMEOUT"), "first"),
    ],
)
def test_a_lease_counts_from_the_first_try_that_may_have_been_granted(
    first: httpx.Response | Exception, counted_from: str
) -> None:
    server = FakeServer(first, granted(lease_seconds=30), takes=1.0)
    claim = server.client().claim(RECORD, "remediation")
    began = {"first": 1000.0, "second": 1001.0 + server.clock.waits[0]}[counted_from]
    assert claim.seconds_left == pytest.approx(began + 30 - server.clock.time)


def test_a_grant_that_is_over_when_it_arrives_is_asked_for_anew() -> None:
    server = FakeServer(httpx.ReadTimeout("no answer"), granted(lease_seconds=2), granted(lease_seconds=2, epoch=3), takes=1.5)
    claim = server.client().claim(RECORD, "remediation")
    keys = [request.headers["Idempotency-Key"] for request in server.requests]
    assert keys[0] == keys[1] != keys[2]
    assert claim.epoch == 3
    assert claim.live


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(200, html="<html>Welcome</html>"),
        httpx.Response(200, json=[1]),
        httpx.Response(200, json={"hello": "world"}),
        httpx.Response(404, html="<html>Not Found</html>"),
        httpx.Response(404, json={"detail": "Not Found"}),
        httpx.Response(302, headers={"Location": "/login"}),
        httpx.Response(500, text=""),
    ],
)
def test_what_is_not_kslates_answer_is_told_at_once(answer: httpx.Response) -> None:
    server = FakeServer(answer)
    with pytest.raises(kslate.UnexpectedAnswer) as unexpected:
        server.client().whoami()
    assert len(server.requests) == 1
    assert not isinstance(unexpected.value, kslate.Transient)
    assert "http://kslate.test" in str(unexpected.value)


def test_a_proxys_refusal_is_passing_and_unexpected() -> None:
    with pytest.raises(kslate.GatewayFailed) as failed:
        FakeServer(httpx.Response(502, html=HTML)).client(retry_for=0).whoami()
    assert isinstance(failed.value, kslate.Transient)
    assert isinstance(failed.value, kslate.UnexpectedAnswer)
    assert failed.value.status == 502
    assert "Bad Gateway" in str(failed.value)


def test_the_constructor_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KSLATE_APIKEY", raising=False)
    monkeypatch.delenv("KSLATE_SERVER", raising=False)
    before = threading.active_count()
    client = Client()
    assert client._transport._session is None
    assert threading.active_count() == before
    assert repr(client) == "Client('http://127.0.0.1:8080')"
    with pytest.raises(kslate.Unauthenticated, match="KSLATE_APIKEY"):
        client.whoami()
    monkeypatch.setenv("KSLATE_SERVER", "kslate.test")
    with pytest.raises(ValueError, match="http://"):
        client.whoami()


def test_the_environment_is_read_at_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(ME)
    client = Client()
    client._transport._http = httpx.MockTransport(server)
    monkeypatch.setenv("KSLATE_SERVER", "http://elsewhere.test/kslate/")
    monkeypatch.setenv("KSLATE_APIKEY", "secret\n")
    client.whoami()
    assert str(server.requests[0].url) == "http://elsewhere.test/kslate/v1/whoami"
    assert server.requests[0].headers["Authorization"] == "Bearer secret"
    assert "secret" not in repr(client) + repr(vars(client))


def test_a_closed_client_is_closed() -> None:
    with FakeServer(ME).client() as client:
        client.whoami()
    with pytest.raises(RuntimeError, match="closed"):
        client.whoami()


def test_a_forked_child_gets_connections_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    client = FakeServer(ME, clock=FakeClock()).client()
    client.whoami()
    parents = client._transport._session
    monkeypatch.setattr("os.getpid", lambda: -1)
    client.whoami()
    assert client._transport._session is not parents


@pytest.mark.parametrize("record", ["incidents", "", "/x", "incidents/", "incidents/..", "./x"])
def test_a_wrong_name_never_becomes_another_route(record: str) -> None:
    server = FakeServer(ME)
    with pytest.raises(kslate.Malformed):
        server.client().get(record)
    assert server.requests == []


def test_names_are_quoted() -> None:
    server = FakeServer(ME)
    with pytest.raises(kslate.UnexpectedAnswer):
        server.client().history("incidents/a/b?c", field="x&y", after=0, newest_first=True, with_values=False)
    assert server.requests[0].url.raw_path == (
        b"/v1/records/incidents/a%2Fb%3Fc/history?field=x%26y&after=0&newest_first=true&with_values=false"
    )
