"""Compares history with the agents' own logs and tells each promise that was not kept.

It takes nothing from the package under test: requests and answers as they were on the wire, history as the API tells
it. The agents' class is that of `under_fire/storm.yaml`; what an agent writes names its epoch, and is written once.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from .recording import Exchange, Process, Recording, Row, moment

TASK = "job"
GRANTS = ("claim", "takeover", "reattach")
WORKERS = "remediator/"


def check(recording: Recording) -> list[str]:
    """What is wrong; nothing is: an empty list."""
    return [finding for each in CHECKS for finding in each(recording)]


# History by itself


def versions(recording: Recording) -> Iterator[str]:
    """History has no hole."""
    for record, rows in recording.history.items():
        numbers = [row["record_version"] for row in rows]
        if numbers != list(range(len(rows))):
            yield f"versions: {record} has the record versions {numbers}"


def completed_once(recording: Recording) -> Iterator[str]:
    """Every task is completed, exactly once, after its last step."""
    for record, rows in recording.history.items():
        completions = [row for row in rows if row["op"] == "complete"]
        if len(completions) != 1 or any(row["op"] == "reopen" for row in rows):
            yield f"completed once: {record} was completed {len(completions)} times"
        elif any(row["op"] == "append" and row["record_version"] > completions[0]["record_version"] for row in rows):
            yield f"completed once: {record} was worked on after its completion"


def steps_once(recording: Recording) -> Iterator[str]:
    """Every step of every task was done once, in order, whoever died in between."""
    for record, rows in recording.history.items():
        wanted = list(range(1, rows[0]["value"]["size"] + 1))
        done = [row["value"]["step"] for row in rows if row["op"] == "append"]
        if done != wanted:
            yield f"steps once: {record} has the steps {done}, not {wanted}"


# History beside the logs


def fenced(recording: Recording) -> Iterator[str]:
    """Whatever a worker changed, it changed under the claim that was the live one at that place in history."""
    epochs = _epochs(recording)
    requests = _requests(recording)
    for record, rows in recording.history.items():
        grant: Row | None = None
        for row in rows:
            at = f"{record}@{row['record_version']} ({row['op']} by {row['author']})"
            if row["op"] in GRANTS:
                grant = row
            elif WORKERS in row["author"]:
                if grant is None or grant["author"] != row["author"]:
                    yield f"fenced: {at} landed without a claim of its author"
                    continue
                under = {exchange.body.get("claim_id") for exchange in requests.get(_row_key(record, row), [])}
                if not under:
                    yield f"fenced: {at} was sent by nobody"
                elif grant["epoch"] not in {epochs.get(claim_id or "", (0, ("", 0)))[0] for claim_id in under}:
                    yield f"fenced: {at} landed in epoch {grant['epoch']} under a claim of another"
                if isinstance(row["value"], dict) and row["value"].get("epoch") != grant["epoch"]:
                    yield f"fenced: {at} landed in epoch {grant['epoch']}, meant for {row['value'].get('epoch')}"
            if row["op"] in ("release", "force_release", "complete"):
                grant = None


def acknowledged(recording: Recording) -> Iterator[str]:
    """What was acknowledged stands in history where the answer said, what was refused does not, and nothing twice."""
    landed: dict[str, list[int]] = defaultdict(list)
    for record, rows in recording.history.items():
        for row in rows:
            if WORKERS in row["author"] and row["op"] not in GRANTS:
                landed[_row_key(record, row)].append(row["record_version"])
    for key, sendings in _requests(recording).items():
        told = {exchange.answer["record_version"] for exchange in sendings if exchange.status in (200, 201)}
        places = landed.get(key, [])
        if len(places) > 1:
            yield f"acknowledged: {key} landed {len(places)} times"
        elif told and told != set(places):
            yield f"acknowledged: {key} was acknowledged at {told}, history has it at {places}"
        elif places and all(400 <= (exchange.status or 0) < 500 for exchange in sendings):
            yield f"acknowledged: {key} was refused, history has it at {places}"


def takeovers(recording: Recording) -> Iterator[str]:
    """A lapsed claim of another is displaced by a takeover that names it, no earlier, and its taker was told."""
    expiries: dict[tuple[str, int], datetime] = {}
    grants: dict[tuple[str, int], Exchange] = {}
    for exchange in recording.exchanges:
        if exchange.status == 200 and "expires_at" in exchange.answer and "epoch" in exchange.answer:
            place = (exchange.record, exchange.answer["epoch"])
            expiry = moment(exchange.answer["expires_at"])
            expiries[place] = max(expiry, expiries.get(place, expiry))
            if exchange.is_claim():
                grants[place] = exchange
    for record, rows in recording.history.items():
        before: Row | None = None
        lapsed = False
        for row in rows:
            if row["op"] in GRANTS:
                at = f"{record}@{row['record_version']}"
                if row["epoch"] != (before["epoch"] if before else 0) + 1:
                    yield f"takeovers: {at} has epoch {row['epoch']}"
                other = before["author"] if before and lapsed and before["author"] != row["author"] else None
                if (row["op"], row["took_over_from"]) != (("takeover" if other else "claim"), other):
                    yield f"takeovers: {at} is a {row['op']} from {row['took_over_from']}; the task was left by {other}"
                if (
                    before
                    and lapsed
                    and moment(row["changed_at"]) < expiries.get((record, before["epoch"]), moment(row["changed_at"]))
                ):
                    yield f"takeovers: {at} came before the lease of epoch {before['epoch']} was over"
                told = grants.get((record, row["epoch"]))
                if told and (told.answer["took_over_from"], told.answer["record_version"]) != (
                    other,
                    row["record_version"],
                ):
                    yield f"takeovers: {at} was told otherwise to its owner: {told.answer}"
                before, lapsed = row, True
            elif row["op"] in ("release", "force_release", "complete"):
                lapsed = False
    for record, epoch in grants.keys() - {
        (record, row["epoch"]) for record, rows in recording.history.items() for row in rows if row["op"] in GRANTS
    }:
        yield f"takeovers: the grant of epoch {epoch} of {record} is not in history"


def killed(recording: Recording) -> Iterator[str]:
    """The task of each holder that was killed was taken on, unless its last request still finished it."""
    for kill in recording.kills:
        rows = [row for row in recording.history[kill.record] if row["epoch"] is not None and row["epoch"] >= kill.epoch]
        if not rows or rows[0]["author"] != kill.owner or rows[0]["epoch"] != kill.epoch:
            yield f"killed: history does not have the claim of {kill}"
        elif not any(row["epoch"] == kill.epoch + 1 and row["op"] in GRANTS for row in rows) and not any(
            row["op"] in ("complete", "release") and row["author"] == kill.owner for row in recording.history[kill.record]
        ):
            yield f"killed: nobody took over after {kill}"


def loads(recording: Recording) -> Iterator[str]:
    """Each load gave a checkpoint that was saved, with the difference of history since its version."""
    saved = _saved(recording)
    for process, exchanges in recording.of_process().items():
        for index, load in enumerate(exchanges):
            if not load.is_load():
                continue
            at = f"{load.record} for {process}"
            low = _last_grant(exchanges[:index], load.record)
            high = next(
                (
                    later.answer["record_version"]
                    for later in exchanges[index:]
                    if later.is_read() and later.record == load.record
                ),
                None,
            )
            if low is None or high is None:
                continue
            since = _since(load.answer)
            if load.answer["document"] is not None and (since, _text(load.answer["document"])) not in saved[load.record]:
                yield f"loads: {at} was given a checkpoint that nobody saved"
            rows = recording.history[load.record]
            # The version at the load lies between that of the claim and that of the read which follows the load.
            possible = [_difference(rows, since, version) for version in range(low, high + 1)]
            if load.answer["changed_fields"] not in possible:
                yield f"loads: {at} was told {load.answer['changed_fields']}, history since {since} has {possible[-1]}"


def saves(recording: Recording) -> Iterator[str]:
    """`seen_version` covers what the process had read and its own writes as far as they follow it, and nothing else."""
    epochs = _epochs(recording)
    for process, exchanges in recording.of_process().items():
        for index, save in enumerate(exchanges):
            if not save.is_save():
                continue
            at = f"{save.record} by {process}"
            seen_version = save.body.get("seen_version")
            reads = [(i, each) for i, each in enumerate(exchanges[:index]) if each.is_read() and each.record == save.record]
            if seen_version is None or not reads:
                yield f"saves: {at} was saved without a version that was seen"
                continue
            first, read = reads[-1]
            own = {
                each.answer["record_version"]
                for each in exchanges[first:index]
                if each.is_change() and each.record == save.record and each.status in (200, 201)
            }
            unseen = set(range(read.answer["record_version"] + 1, seen_version + 1)) - own
            if unseen or seen_version < read.answer["record_version"]:
                read_at = read.answer["record_version"]
                yield f"saves: {at} claims to have seen {seen_version}, read {read_at}, wrote {sorted(own)}"
            if seen_version + 1 in own:
                yield f"saves: {at} stops at {seen_version} before its own write {seen_version + 1}"
            if epochs.get(save.body.get("claim_id", ""), (0, ("", 0)))[1] != process:
                yield f"saves: {at} was saved under a claim of another"


def seen(recording: Recording) -> Iterator[str]:
    """Each decision was made on the record as it was at the version it names; the first of a claim knew all that changed."""
    by_process = recording.of_process()
    begun: set[str] = set()
    for decision in recording.decisions:
        record, version = decision["record"], decision["record_version"]
        rows = recording.history[record]
        at = f"{record}@{version} for {decision['process']}"
        now = {each["field"]: each["version"] for each in _difference(rows, -1, version)}
        for field, told in decision["versions"].items():
            if told != now.get(field, 0) and field != TASK:
                yield f"seen: {at} saw version {told} of {field}"
        if decision["claim_id"] in begun:
            continue
        begun.add(decision["claim_id"])
        before = [each for each in by_process[decision["process"]] if each.sent_at < decision["at"] and each.record == record]
        loaded = [each.answer for each in before if each.is_load()]
        if not loaded:
            yield f"seen: {at} began without a checkpoint"
            continue
        changed = [[each["field"], each["version"]] for each in _difference(rows, _since(loaded[-1]), version)]
        if decision["changed_fields"] != changed:
            yield f"seen: {at} began with {decision['changed_fields']}; since its checkpoint there is {changed}"


CHECKS = (versions, completed_once, steps_once, fenced, acknowledged, takeovers, killed, loads, saves, seen)


# What the checks look things up in


def _epochs(recording: Recording) -> dict[str, tuple[int, Process]]:
    """Epoch and process of each claim_id that was told."""
    return {
        exchange.answer["claim_id"]: (exchange.answer["epoch"], exchange.process)
        for exchange in recording.exchanges
        if exchange.is_claim()
    }


def _requests(recording: Recording) -> dict[str, list[Exchange]]:
    """The sendings of each change that a worker asked for: more than one where the client tried again."""
    requests = defaultdict(list)
    for exchange in recording.exchanges:
        if exchange.is_change():
            op = {"entries": "append", "complete": "complete", "release": "release"}.get(
                exchange.path.rpartition("/")[2], "write"
            )
            requests[_key(exchange.record, op, exchange.process[0], exchange.body.get("value"))].append(exchange)
    return requests


def _row_key(record: str, row: Row) -> str:
    return _key(record, row["op"], row["author"].removeprefix("apikey:"), row["value"])


def _key(record: str, op: str, agent: str, value: Any) -> str:
    return f"{op} {record} by {agent}: {_text(value)}"


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _saved(recording: Recording) -> dict[str, set[tuple[int, str]]]:
    """Version and document of each checkpoint that was or may have been saved: a killed process heard no answer."""
    saved = defaultdict(set)
    for exchange in recording.exchanges:
        if exchange.method == "PUT" and exchange.path.endswith("/checkpoint") and exchange.status in (200, None):
            saved[exchange.record].add((exchange.body.get("seen_version", -1), _text(exchange.body["document"])))
    return saved


def _last_grant(exchanges: list[Exchange], record: str) -> int | None:
    grants = [exchange.answer["record_version"] for exchange in exchanges if exchange.is_claim() and exchange.record == record]
    return grants[-1] if grants else None


def _since(loaded: dict[str, Any]) -> int:
    """The version that a loaded checkpoint has seen; without one nothing was seen, not even first values."""
    return -1 if loaded["document"] is None else int(loaded["record_version"])


def _difference(rows: list[Row], since: int, upto: int) -> list[dict[str, Any]]:
    """What `changed_fields` must say at version `upto` to who has seen `since`."""
    latest: dict[str, Row] = {}
    for row in rows:
        if since < row["record_version"] <= upto:
            if row["op"] == "create":
                latest |= {field: row | {"field": field, "version": 1} for field in row["value"]}
            elif row["op"] in ("write", "append"):
                latest[row["field"]] = row
    return [
        {key: row[key] for key in ("field", "version", "author", "evidence")}
        for row in sorted(latest.values(), key=lambda row: int(row["record_version"]))
    ]
