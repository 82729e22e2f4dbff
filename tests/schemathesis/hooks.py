"""What schemathesis cannot guess: records that are there, claims that are live, versions that match.

Of ten cases that schemathesis means to be good, eight get a record of their own, made by calls beside the run, and what must fit
to it: path, version, claim_id, epoch. All else in them stays as generated. One is made so that a rule refuses it; one, and
all that are meant to be bad, are left alone. Each answer is counted; the counts are in the file COUNTS when the run is over.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
from collections import Counter, defaultdict
from typing import Any

import requests
import schemathesis
from schemathesis.core import NotSet

SERVER = os.environ["KSLATE_SERVER"]
COUNTS = os.environ["COUNTS"]
HEADERS = {"Authorization": f"Bearer {os.environ['KSLATE_APIKEY']}"}
NOTES = {"class": "notes", "roles": {"tester": ["apikey:tester"]}, "fields": {"text": {"mode": "lww", "write": ["tester"]}}}
ASKED = 50
STRANGE = "0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10"
READABLE = ["status", "note", "setting", "reasons", "log", "guarded", "work"]

# Another run against the same database makes other records.
RUN = os.getpid()
numbers = itertools.count(1)
session = requests.Session()
counts: defaultdict[str, Counter[str]] = defaultdict(Counter)


def call(method: str, path: str, body: Any = None) -> Any:
    """A call that prepares a case: it must succeed."""
    response = session.request(method, f"{SERVER}/v1/records/surface/{path}", json=body or {}, headers=HEADERS, timeout=30)
    response.raise_for_status()
    return response.json()


def record() -> str:
    """The key of a record that was made now, with something of everything in it."""
    key = f"made-{RUN}-{next(numbers)}"
    call("PUT", key, {"fields": {"setting": {"a": 1, "b": [2]}}})
    return key


def claimed(key: str) -> dict[str, Any]:
    return call("POST", f"{key}/fields/work/claim")


def fresh(case: Any, **more: str) -> str:
    """Points a case at a record that was made for it."""
    key = record()
    case.path_parameters = {"class": "surface", "key": key, **more}
    return key


def body(case: Any, keep: tuple[str, ...] = (), **more: Any) -> None:
    """A body of the keys to keep, as they were generated, and these."""
    generated = case.body if isinstance(case.body, dict) else {}
    case.media_type = "application/json"
    case.body = {key: value for key, value in generated.items() if key in keep} | more


def query(case: Any, **more: Any) -> None:
    """The query as it was generated, but for these; None takes one out."""
    kept = {key: value for key, value in case.query.items() if key not in more}
    case.query = kept | {key: value for key, value in more.items() if value is not None}


def generated(case: Any, key: str, default: Any) -> Any:
    return case.body.get(key, default) if isinstance(case.body, dict) else default


def lease(case: Any) -> int:
    seconds = generated(case, "lease_seconds", None)
    return int(seconds) % 3600 + 1 if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) else 60


def create_record(case: Any, turn: int) -> None:
    case.path_parameters = {"class": "surface", "key": f"new-{RUN}-{next(numbers)}"}
    first = generated(case, "fields", None) or {}
    value = next(iter(first.values()), None)
    body(case, ("evidence",), **({"fields": {"note": value}} if turn % 2 else {}))


def get_record(case: Any, turn: int) -> None:
    fresh(case)
    query(case, fields=",".join(READABLE[: turn % 8]) or None)


def list_records(case: Any, turn: int) -> None:
    record()
    case.path_parameters = {"class": "surface"}
    query(case, filter=[None, '{"status":["open"]}', '{"note":null}'][turn % 3], fields=[None, "status,work"][turn % 2])


def write_many(case: Any, turn: int) -> None:
    key = fresh(case)
    changes = generated(case, "changes", None) or [{}]
    first = changes[0] if isinstance(changes[0], dict) else {}
    note = {"field": "note", "value": first.get("value"), "expected_version": 0, "evidence": first.get("evidence")}
    setting = {"field": "setting", "value": changes[-1].get("value") if isinstance(changes[-1], dict) else None}
    claim = {"claim_id": claimed(key)["claim_id"]} if turn % 3 == 0 else {}
    body(case, changes=[note, setting], **claim)


def write_field(case: Any, turn: int) -> None:
    field = ["note", "setting", "guarded", "reasons"][turn % 4]
    key = fresh(case, field=field)
    more: dict[str, Any] = {"value": generated(case, "value", None), "expected_version": 1 if field == "setting" else 0}
    if field == "guarded":
        more["claim_id"] = claimed(key)["claim_id"]
    if field == "reasons":
        more["evidence"] = "setting@1"
    body(case, ("evidence",), **more)


def get_field(case: Any, turn: int) -> None:
    fresh(case, field=READABLE[turn % len(READABLE)])


def append_entry(case: Any, turn: int) -> None:
    fresh(case, field="log")
    body(case, ("value", "evidence"), expected_version=[0, None][turn % 2])


def list_entries(case: Any, turn: int) -> None:
    key = fresh(case, field="log")
    call("POST", f"{key}/fields/log/entries", {"value": turn})


def claim(case: Any, turn: int) -> None:
    key = fresh(case, field="work")
    if turn % 3 == 0:
        claimed(key)
        body(case, lease_seconds=lease(case), reattach=True)
    else:
        body(case, ("reattach",), lease_seconds=lease(case))


def claim_next(case: Any, turn: int) -> None:
    record()
    case.path_parameters = {"class": "surface"}
    # A key is remembered for the whole class.
    case.headers.pop("Idempotency-Key", None)
    body(case, field="work", lease_seconds=lease(case), filter=[None, {"status": "open"}, {"note": 1}][turn % 3])


def held(case: Any) -> dict[str, Any]:
    return claimed(fresh(case, field="work"))


def renew(case: Any, turn: int) -> None:
    body(case, claim_id=held(case)["claim_id"], lease_seconds=[lease(case), None][turn % 2])


def release(case: Any, turn: int) -> None:
    body(case, ("reason",), claim_id=held(case)["claim_id"])


def complete(case: Any, turn: int) -> None:
    body(case, ("value", "evidence"), claim_id=held(case)["claim_id"])


def reopen(case: Any, turn: int) -> None:
    grant = held(case)
    call("POST", f"{grant['record'].split('/')[1]}/fields/work/complete", {"claim_id": grant["claim_id"], "value": turn})
    body(case, ("reason",))


def force_release(case: Any, turn: int) -> None:
    reason = generated(case, "reason", "")
    body(case, expected_epoch=held(case)["epoch"], reason=reason if isinstance(reason, str) and reason.strip() else "stuck")


def save_checkpoint(case: Any, turn: int) -> None:
    fresh(case)
    query(case, role=[None, "tester"][turn % 2])
    document = generated(case, "document", None)
    body(case, document=(document if isinstance(document, dict) else {}) | {"goal": turn}, seen_version=[0, None][turn % 2])


def load_checkpoint(case: Any, turn: int) -> None:
    call("PUT", f"{fresh(case)}/checkpoint", {"document": {"goal": turn}})
    query(case, role=[None, "tester"][turn % 2], checkpoint_id=[None, 1][turn % 2])


def list_checkpoints(case: Any, turn: int) -> None:
    call("PUT", f"{fresh(case)}/checkpoint", {"document": {"goal": turn}})
    query(case, role=[None, "tester"][turn % 2])


def history(case: Any, turn: int) -> None:
    claimed(fresh(case))
    query(case, field=[None, "work", "setting"][turn % 3])


def blame(case: Any, turn: int) -> None:
    key = fresh(case)
    call("PUT", f"{key}/fields/note", {"value": {"x": turn}, "expected_version": 0, "evidence": "setting@1"})
    call("POST", f"{key}/fields/log/entries", {"value": turn})
    query(case, field=[None, "note", "log"][turn % 3], after=[None, None, 0][turn % 3])


def get_class(case: Any, turn: int) -> None:
    case.path_parameters = {"class": "surface"}
    query(case, version=[None, 1][turn % 2])


def apply_class(case: Any, turn: int) -> None:
    case.path_parameters = {"class": "notes"}
    case.headers.pop("Idempotency-Key", None)
    case.media_type = "application/json"
    case.body = NOTES | {"description": f"Notes, as of {turn}."}


FILL = {
    "createRecord": create_record,
    "getRecord": get_record,
    "listRecords": list_records,
    "writeMany": write_many,
    "writeField": write_field,
    "getField": get_field,
    "appendEntry": append_entry,
    "listEntries": list_entries,
    "claim": claim,
    "claimNext": claim_next,
    "renew": renew,
    "release": release,
    "complete": complete,
    "reopen": reopen,
    "forceRelease": force_release,
    "saveCheckpoint": save_checkpoint,
    "loadCheckpoint": load_checkpoint,
    "listCheckpoints": list_checkpoints,
    "history": history,
    "blame": blame,
    "getClass": get_class,
    "applyClass": apply_class,
}
turns: Counter[str] = Counter()


def refused_create(case: Any, turn: int) -> None:
    fresh(case)
    body(case, fields={"note": turn})


def refused_write(case: Any, turn: int) -> None:
    field, more = [
        ("note", {"value": 1, "expected_version": 7}),
        ("status", {"value": "resolved", "expected_version": 1}),
        ("status", {"value": "closed", "expected_version": 1}),
        ("reasons", {"value": 1, "expected_version": 0}),
        ("guarded", {"value": 1, "expected_version": 0}),
        ("note", {"value": 1, "expected_version": 0, "claim_id": STRANGE}),
    ][turn // 10 % 6]
    fresh(case, field=field)
    body(case, **more)


def refused_write_many(case: Any, turn: int) -> None:
    fresh(case)
    note = {"field": "note", "value": turn, "expected_version": 7}
    body(case, changes=[[note, {"field": "guarded", "value": 1, "expected_version": 7}], [note]][turn // 10 % 2])


def refused_append(case: Any, turn: int) -> None:
    fresh(case, field="log")
    body(case, ("value",), **[{"expected_version": 7}, {"claim_id": STRANGE}][turn // 10 % 2])


def refused_claim(case: Any, turn: int) -> None:
    grant = held(case)
    if turn // 10 % 2:
        call("POST", f"{grant['record'].split('/')[1]}/fields/work/complete", {"claim_id": grant["claim_id"]})
    body(case)


def refused_holder(case: Any, turn: int) -> None:
    held(case)
    body(case, claim_id=STRANGE)


def refused_reopen(case: Any, turn: int) -> None:
    fresh(case, field="work")
    body(case)


def refused_force_release(case: Any, turn: int) -> None:
    body(case, expected_epoch=held(case)["epoch"] + 1, reason="stuck")


def refused_checkpoint(case: Any, turn: int) -> None:
    fresh(case)
    query(case, role=None)
    body(case, **[{"document": {}}, {"document": {"goal": 1}, "claim_id": STRANGE}][turn // 10 % 2])


def refused_class(case: Any, turn: int) -> None:
    case.path_parameters = {"class": "notes"}
    case.media_type = "application/json"
    case.body = NOTES | {"create": ["nobody"]}


REFUSE = {
    "createRecord": refused_create,
    "writeMany": refused_write_many,
    "writeField": refused_write,
    "appendEntry": refused_append,
    "claim": refused_claim,
    "renew": refused_holder,
    "release": refused_holder,
    "complete": refused_holder,
    "reopen": refused_reopen,
    "forceRelease": refused_force_release,
    "saveCheckpoint": refused_checkpoint,
    "applyClass": refused_class,
}


def operation(case: Any) -> str:
    return case.operation.definition.raw["operationId"]


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    name = operation(case)
    meta = case.meta
    meant_to_be_good = meta is not None and meta.generation.mode.is_positive and case.method.upper() == case.operation.method.upper()
    if name not in FILL or not meant_to_be_good:
        return
    turns[name] += 1
    turn = turns[name]
    if turn % 5:
        FILL[name](case, turn)
    elif turn % 10 and name in REFUSE:
        REFUSE[name](case, turn)


@schemathesis.hook
def after_load_schema(context: Any, schema: Any) -> None:
    """Where there is nothing to vary, schemathesis asks once or twice, and never for the document itself: so here."""
    for path, methods in schema.raw_schema["paths"].items():
        for method, definition in methods.items():
            if "parameters" not in definition and "requestBody" not in definition:
                for _ in range(ASKED):
                    schema[path][method].Case().call_and_validate(base_url=SERVER, headers=HEADERS)


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    counts[operation(case)][str(response.status_code)] += 1


@atexit.register
def tell() -> None:
    with open(COUNTS, "w", encoding="utf-8") as file:
        json.dump(counts, file)
