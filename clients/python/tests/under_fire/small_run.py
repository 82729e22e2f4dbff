"""The recording of a small run that went well: one task, one kill, one takeover, one late write that was refused."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from support.recording import Exchange, Kill, Recording, Row

RECORD = "storm/task-0"
BEGUN = datetime(2026, 11, 29, 14, 40, tzinfo=timezone.utc)
PLANNER = "apikey:diagnoser"


class SmallRun:
    """Writes history and log side by side, a second a step."""

    def __init__(self) -> None:
        self.seconds = 0
        self.rows: list[Row] = []
        self.exchanges: list[Exchange] = []
        self.decisions: list[dict[str, Any]] = []

    def time(self) -> str:
        return (BEGUN + timedelta(seconds=self.seconds)).isoformat()

    def row(self, op: str, author: str, **more: Any) -> Row:
        self.seconds += 1
        empty = dict.fromkeys(("field", "version", "value", "evidence", "epoch", "took_over_from", "reason"))
        row = {"record_version": len(self.rows), "op": op, "author": author, "changed_at": self.time(), **empty, **more}
        self.rows.append(row)
        return row

    def plan(self, version: int) -> None:
        self.row("write", PLANNER, field="plan", version=version, value=f"plan {version}", evidence="thought again")

    def exchange(
        self, worker: int, method: str, path: str, body: dict[str, Any], status: int, answer: dict[str, Any]
    ) -> Exchange:
        process = (f"remediator/worker-{worker}", 1000 + worker)
        full = path if path.startswith("/") else f"/v1/records/{RECORD}/{path}".rstrip("/")
        exchange = Exchange(process, len(self.exchanges), method, full, body, float(self.seconds), status, answer)
        self.exchanges.append(exchange)
        return exchange

    def claim(self, worker: int, epoch: int, took_over_from: str | None) -> None:
        op = "takeover" if took_over_from else "claim"
        row = self.row(op, f"apikey:remediator/worker-{worker}", field="job", epoch=epoch, took_over_from=took_over_from)
        answer = {
            "record": RECORD,
            "claim_id": f"claim-{epoch}",
            "epoch": epoch,
            "expires_at": (BEGUN + timedelta(seconds=self.seconds + 2)).isoformat(),
            "took_over_from": took_over_from,
            "record_version": row["record_version"],
        }
        self.exchange(worker, "POST", "/v1/classes/storm/claim", {"field": "job"}, 200, answer)

    def load(self, worker: int, epoch: int, document: dict[str, Any] | None, since: int, changed: list[Row]) -> None:
        fields = [{key: row[key] for key in ("field", "version", "author", "evidence")} for row in changed]
        self.exchange(
            worker,
            "GET",
            "checkpoint",
            {},
            200,
            {"document": document, "record_version": since, "changed_fields": fields},
        )
        self.read(worker)
        versions = {row["field"]: row["version"] for row in self.rows if row["version"]} | {"size": 1}
        self.decisions.append(
            {
                "process": self.exchanges[-1].process,
                "at": float(self.seconds + 1),
                "record": RECORD,
                "record_version": len(self.rows) - 1,
                "claim_id": f"claim-{epoch}",
                "changed_fields": [[row["field"], row["version"]] for row in fields],
                "versions": versions,
            }
        )

    def read(self, worker: int) -> None:
        self.exchange(worker, "GET", "", {}, 200, {"record_version": len(self.rows) - 1})

    def change(self, worker: int, epoch: int, op: str, path: str, value: dict[str, Any], field: str, version: int) -> None:
        value = value | {"epoch": epoch, "nonce": f"{op}-{epoch}-{len(self.rows)}"}
        row = self.row(op, f"apikey:remediator/worker-{worker}", field=field, version=version, value=value)
        body = {"value": dict(value), "claim_id": f"claim-{epoch}"}
        method = "PUT" if op == "write" else "POST"
        self.exchange(worker, method, path, body, 200, {"record_version": row["record_version"]})

    def step(self, worker: int, epoch: int, step: int) -> None:
        self.change(worker, epoch, "write", "fields/stage", {"step": step}, "stage", step)
        self.change(worker, epoch, "append", "fields/log/entries", {"step": step}, "log", step)
        body = {"document": {"progress": step}, "seen_version": len(self.rows) - 1, "claim_id": f"claim-{epoch}"}
        self.exchange(worker, "PUT", "checkpoint", body, 200, {"record_version": len(self.rows) - 1})


def small_run() -> Recording:
    run = SmallRun()
    run.row("create", PLANNER, value={"size": 2})
    run.plan(1)
    run.claim(1, 1, None)
    first = run.rows[0] | {"field": "size", "version": 1}
    run.load(1, 1, None, 0, [first, run.rows[1]])
    run.step(1, 1, 1)
    run.plan(2)
    run.seconds += 2
    run.claim(2, 2, "apikey:remediator/worker-1")
    run.load(2, 2, {"progress": 1}, 4, [run.rows[5]])
    late = {"value": {"step": 2, "epoch": 1, "nonce": "late"}, "claim_id": "claim-1"}
    run.exchange(1, "POST", "fields/log/entries", late, 409, {"error": "LEASE_LOST"})
    run.step(2, 2, 2)
    run.read(2)
    run.change(2, 2, "complete", "fields/job/complete", {"steps": 2}, "job", 1)
    kill = Kill(RECORD, 1, "apikey:remediator/worker-1")
    return Recording({RECORD: run.rows}, run.exchanges, run.decisions, [kill])
