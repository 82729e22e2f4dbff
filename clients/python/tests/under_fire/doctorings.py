"""Ways in which a run could have gone wrong, each forged into the recording of one that went well.

Each takes a recording of one record that was taken over after a kill (`small_run`, or one picked out of a real storm),
changes it in place, and is to be found by the check that its entry in DOCTORINGS names.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import timedelta

from support.recording import Exchange, Recording, Row, moment


def rows_of(recording: Recording) -> list[Row]:
    (rows,) = recording.history.values()
    return rows


def row_where(recording: Recording, op: str, *, last: bool = False) -> Row:
    found = [row for row in rows_of(recording) if row["op"] == op]
    return found[-1 if last else 0]


def insert(recording: Recording, at: int, row: Row) -> None:
    """Puts a row in, with the versions that follow moved up as if it had always been there."""
    rows = rows_of(recording)
    rows.insert(at, copy.deepcopy(row))
    for number, each in enumerate(rows):
        each["record_version"] = number


def takeover_index(recording: Recording) -> int:
    return next(index for index, row in enumerate(rows_of(recording)) if row["op"] == "takeover")


def exchange_where(recording: Recording, condition: Callable[[Exchange], bool]) -> Exchange:
    return next(exchange for exchange in recording.exchanges if condition(exchange))


def a_hole_in_the_versions(recording: Recording) -> None:
    rows_of(recording)[-1]["record_version"] += 1


def never_completed(recording: Recording) -> None:
    rows_of(recording).remove(row_where(recording, "complete"))


def completed_twice(recording: Recording) -> None:
    insert(recording, len(rows_of(recording)), row_where(recording, "complete"))


def worked_on_after_completion(recording: Recording) -> None:
    insert(recording, len(rows_of(recording)), row_where(recording, "append", last=True))


def a_step_done_twice(recording: Recording) -> None:
    last = row_where(recording, "append", last=True)
    insert(recording, rows_of(recording).index(last) + 1, last)


def a_step_left_out(recording: Recording) -> None:
    rows_of(recording).remove(row_where(recording, "append"))


def an_acknowledged_write_lost(recording: Recording) -> None:
    told = exchange_where(recording, lambda each: each.is_change() and each.method == "PUT" and each.status == 200)
    del rows_of(recording)[told.answer["record_version"]]


def a_fenced_write_landed(recording: Recording) -> None:
    """What the first holder wrote comes in once more, after it was displaced."""
    before = takeover_index(recording)
    owner = rows_of(recording)[before]["took_over_from"]
    late = next(row for row in rows_of(recording)[:before] if row["author"] == owner and row["op"] == "write")
    rows_of(recording).remove(late)
    insert(recording, before, late)


def a_refused_write_landed(recording: Recording) -> None:
    refused = exchange_where(
        recording, lambda exchange: exchange.answer.get("error") == "LEASE_LOST" and "value" in exchange.body
    )
    row = row_where(recording, "append") | {"author": f"apikey:{refused.process[0]}", "value": refused.body["value"]}
    insert(recording, len(rows_of(recording)) - 1, row)


def a_change_that_nobody_sent(recording: Recording) -> None:
    row_where(recording, "append")["value"]["nonce"] = "forged"


def a_takeover_told_as_a_claim(recording: Recording) -> None:
    rows_of(recording)[takeover_index(recording)]["op"] = "claim"


def a_takeover_from_another(recording: Recording) -> None:
    rows_of(recording)[takeover_index(recording)]["took_over_from"] = "apikey:remediator/worker-99"


def a_takeover_of_a_live_lease(recording: Recording) -> None:
    row = rows_of(recording)[takeover_index(recording)]
    row["changed_at"] = (moment(row["changed_at"]) - timedelta(seconds=60)).isoformat()


def an_epoch_given_twice(recording: Recording) -> None:
    rows_of(recording)[takeover_index(recording)]["epoch"] -= 1


def a_dead_holder_forgotten(recording: Recording) -> None:
    """History ends where the first killed holder left it."""
    kill = recording.kills[0]
    rows = rows_of(recording)
    end = next(index for index, row in enumerate(rows) if (row["epoch"] or 0) > kill.epoch)
    del rows[end:]


def a_change_kept_from_the_replacement(recording: Recording) -> None:
    load = exchange_where(
        recording,
        lambda exchange: exchange.is_load() and exchange.answer["document"] and exchange.answer["changed_fields"],
    )
    del load.answer["changed_fields"][-1]


def ones_own_cycle_told_as_a_change(recording: Recording) -> None:
    load = exchange_where(recording, lambda exchange: exchange.is_load() and exchange.answer["document"] is not None)
    own = row_where(recording, "append")
    load.answer["changed_fields"].append({key: own[key] for key in ("field", "version", "author", "evidence")})


def anothers_checkpoint_loaded(recording: Recording) -> None:
    exchange_where(recording, lambda exchange: exchange.is_load() and exchange.answer["document"]).answer["document"] = {
        "progress": 99
    }


def a_change_counted_as_seen(recording: Recording) -> None:
    exchange_where(recording, Exchange.is_save).body["seen_version"] += 1


def ones_own_write_not_counted_as_seen(recording: Recording) -> None:
    exchange_where(recording, Exchange.is_save).body["seen_version"] -= 1


def a_decision_on_old_values(recording: Recording) -> None:
    versions = recording.decisions[-1]["versions"]
    versions["plan"] -= 1


def a_decision_without_the_changes(recording: Recording) -> None:
    next(decision for decision in recording.decisions if decision["changed_fields"])["changed_fields"] = []


# A doctoring, and the check that is to find it.
DOCTORINGS: dict[Callable[[Recording], None], str] = {
    a_hole_in_the_versions: "versions",
    never_completed: "completed once",
    completed_twice: "completed once",
    worked_on_after_completion: "completed once",
    a_step_done_twice: "steps once",
    a_step_left_out: "steps once",
    an_acknowledged_write_lost: "acknowledged",
    a_fenced_write_landed: "fenced",
    a_refused_write_landed: "acknowledged",
    a_change_that_nobody_sent: "fenced",
    a_takeover_told_as_a_claim: "takeovers",
    a_takeover_from_another: "takeovers",
    a_takeover_of_a_live_lease: "takeovers",
    an_epoch_given_twice: "takeovers",
    a_dead_holder_forgotten: "killed",
    a_change_kept_from_the_replacement: "loads",
    ones_own_cycle_told_as_a_change: "loads",
    anothers_checkpoint_loaded: "loads",
    a_change_counted_as_seen: "saves",
    ones_own_write_not_counted_as_seen: "saves",
    a_decision_on_old_values: "seen",
    a_decision_without_the_changes: "seen",
}
