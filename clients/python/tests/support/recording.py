"""What is left of a run: the agents' own logs, the record of who was killed, and history as the API tells it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from .deployment import Deployment

Row = dict[str, Any]
Process = tuple[str, int]


@dataclass
class Exchange:
    """One request of an agent, as its wiretap saw it. No status: connection or process died before the answer."""

    process: Process
    number: int
    method: str
    path: str
    body: dict[str, Any]
    sent_at: float
    status: int | None = None
    answer: dict[str, Any] = field(default_factory=dict)

    @property
    def record(self) -> str:
        """`class/key` out of the path or, for claim next, out of the answer."""
        parts = self.path.split("/")
        return "/".join(parts[3:5]) if parts[2] == "records" else self.answer.get("record") or ""

    def is_claim(self) -> bool:
        return self.method == "POST" and self.path.endswith("/claim") and self.status == 200 and bool(self.record)

    def is_read(self) -> bool:
        return self.method == "GET" and self.path == f"/v1/records/{self.record}" and self.status == 200

    def is_load(self) -> bool:
        return self.method == "GET" and self.path.endswith("/checkpoint") and self.status == 200

    def is_save(self) -> bool:
        return self.method == "PUT" and self.path.endswith("/checkpoint") and self.status == 200

    def is_change(self) -> bool:
        """A request for a change that history would show, but for claims."""
        if self.method == "POST":
            return self.path.rpartition("/")[2] in ("entries", "complete", "release")
        return self.method in ("PUT", "PATCH") and "/fields/" in self.path


@dataclass(frozen=True)
class Kill:
    """A process that held a live claim when it was killed: the API said so after it was stopped for that."""

    record: str
    epoch: int
    owner: str


@dataclass
class Recording:
    """All of a run that the checker looks at."""

    history: dict[str, list[Row]]
    exchanges: list[Exchange]
    decisions: list[dict[str, Any]]
    kills: list[Kill] = field(default_factory=list)

    def of_process(self) -> dict[Process, list[Exchange]]:
        """Each process' exchanges, in the order of sending."""
        by_process: dict[Process, list[Exchange]] = defaultdict(list)
        for exchange in self.exchanges:
            by_process[exchange.process].append(exchange)
        return by_process

    def by_record(self) -> Iterator[Recording]:
        """What there is of each record alone."""
        alone = {record: Recording({record: rows}, [], []) for record, rows in self.history.items()}
        for exchange in self.exchanges:
            if exchange.record in alone:
                alone[exchange.record].exchanges.append(exchange)
        for decision in self.decisions:
            alone[decision["record"]].decisions.append(decision)
        for kill in self.kills:
            alone[kill.record].kills.append(kill)
        yield from alone.values()

    def takeovers(self) -> int:
        return sum(row["op"] == "takeover" for rows in self.history.values() for row in rows)

    def lease_lost_answers(self) -> int:
        return sum(exchange.answer.get("error") == "LEASE_LOST" for exchange in self.exchanges)


def moment(text: str) -> datetime:
    """A time of the API, which has up to six digits of a second's fraction."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z" if "." in text else "%Y-%m-%dT%H:%M:%S%z")  # noqa: DTZ007 (both have %z)


def read_logs(files: Iterable[Path]) -> tuple[list[Exchange], list[dict[str, Any]]]:
    """The exchanges and the decisions that the agents noted."""
    exchanges: dict[tuple[Process, int], Exchange] = {}
    decisions = []
    for file in files:
        for line in file.read_text().splitlines():
            note = json.loads(line)
            process = (note["agent"], note["pid"])
            match note["event"]:
                case "sent":
                    exchanges[process, note["n"]] = Exchange(
                        process, note["n"], note["method"], note["path"], note["body"] or {}, note["at"]
                    )
                case "answered":
                    exchange = exchanges[process, note["n"]]
                    exchange.status, exchange.answer = note["status"], note["answer"] or {}
                case "decide":
                    decisions.append(note | {"process": process})
    return list(exchanges.values()), decisions


def history_of(deployment: Deployment, class_name: str) -> dict[str, list[Row]]:
    """The whole history of each record of a class, through the API."""
    history = {}
    for record in _pages(deployment, f"/v1/records/{class_name}", "records"):
        history[record["record"]] = list(_pages(deployment, f"/v1/records/{record['record']}/history", "history"))
    return history


def _pages(deployment: Deployment, path: str, plural: str) -> Iterable[dict[str, Any]]:
    after = ""
    while True:
        page = deployment.call("GET", f"{path}?page_size=1000{after}")
        yield from page[plural]
        if page["next"] is None:
            return
        after = f"&after={page['next']}"
