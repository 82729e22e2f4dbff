"""`python3 -m bench.page`: puts what was measured into docs/performance.md, between its two marks.

Taken are the full reports in bench/results/, and of each row the newest.
"""

import json

from bench.cluster import HERE, ROOT
from bench.floor import CLIENTS
from bench.report import shown

BEGIN, END = "<!-- begin: python3 -m bench.page -->\n", "<!-- end -->\n"


def main():
    reports = [
        json.loads(path.read_text()) for path in sorted(HERE.glob("results/*.json"), key=lambda path: path.stat().st_mtime)
    ]
    # Memory alone is no part of the page, and must not date it.
    reports = [report for report in reports if report["form"] == "full" and set(report["sections"]) != {"Memory of the shim"}]
    if not reports:
        raise SystemExit("no full report in bench/results: run `make bench` first")
    last = reports[-1]
    text = f"{last['cpu']}, {last['memory']}, PostgreSQL {last['PostgreSQL']}, {last['date']}, commit {last['commit']}.\n\n"
    text += "\n".join(filter(None, (make(reports) for make in (sql, http, growth, contention, peers)))) + "\n"
    page = ROOT / "docs/performance.md"
    head, rest = page.read_text().split(BEGIN)
    page.write_text(head + BEGIN + text + END + rest.split(END)[1])


def rows(reports, title, *key):
    """The rows of a section; one with the same key replaces an earlier one."""
    found = {}
    for report in reports:
        for row in report["sections"].get(title, []):
            found[tuple(row[column] for column in key)] = row
    return list(found.values())


def table(title, columns, lines):
    if not lines:
        return None
    cells = [columns, ["---"] * len(columns), *([shown(cell) for cell in line] for line in lines)]
    return f"**{title}**\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in cells)


def sql(reports):
    found = rows(reports, "SQL, against the floor", "operation", "sync", "clients")
    lines = []
    for name in dict.fromkeys(row["operation"] for row in found):

        def worst(sync, what="of the floor", pick=min):
            return pick((row[what] for row in found if row["operation"] == name and row["sync"] == sync), default=None)

        eight = {row["sync"]: row["tps"] for row in found if row["operation"] == name and row["clients"] == 8}
        cpu = [ratio for ratio in (worst("on", "cpu ratio", max), worst("off", "cpu ratio", max)) if ratio]
        alone = {row["sync"]: row["p50 ms"] for row in found if row["operation"] == name and row["clients"] == 1}
        lines.append([name, worst("on"), worst("off"), max(cpu), eight.get("on"), eight.get("off"), alone.get("off", alone.get("on"))])
    return table(
        "In SQL, to the floor: the worst of 1, 8 and 32 clients",
        [
            "operation",
            "tps, flushed",
            "tps, `synchronous_commit` off",
            "CPU",
            "per second, 8 clients",
            "the same, off",
            "p50 ms, 1 client, off",
        ],
        lines,
    )


def http(reports):
    found = rows(reports, "HTTP, against the function called from pgbench", "operation", "sync", "clients")
    lines = []
    for name, sync in dict.fromkeys((row["operation"], row["sync"]) for row in found):
        of = {row["clients"]: row for row in found if (row["operation"], row["sync"]) == (name, sync)}
        alone, eight = of[1], of[8]
        ratios = [of[clients]["of pgbench"] for clients in CLIENTS]
        lines.append([name, sync, *ratios, alone["p50 ms"], alone["adds ms"], eight["tps"], eight["shim cpu µs"]])
    return table(
        "Over HTTP, to the same function from pgbench with as many clients",
        [
            "operation",
            "`synchronous_commit`",
            *(f"tps, {clients}" for clients in CLIENTS),
            "p50 ms, 1 client",
            "adds ms, 1 client",
            "per second, 8 connections",
            "server's CPU, µs",
        ],
        lines,
    )


def growth(reports):
    found = rows(reports, "Growth of history", "operation")
    lines = [[row["operation"], *list(row.values())[1:]] for row in found]
    first = table("Beside more history: p50 in ms, and the ratios", list(found[0]) if found else [], lines)
    found = rows(reports, "Growth of the queue", "")
    lines = [list(row.values()) for row in found]
    second = table("On a longer queue (open / done / held): p50 in ms, and the ratio", list(found[0]) if found else [], lines)
    return "\n".join(filter(None, (first, second))) or None


def contention(reports):
    parts = []
    for title, said in (
        ("A hot record", "One record, appended to"),
        ("One task", "One task, claimed by 64 clients"),
        ("Renewals", "Ten thousand live leases"),
    ):
        found = rows(
            reports, title, *(("clients", "sync") if title == "A hot record" else ("sync",) if title == "One task" else ())
        )
        parts.append(table(said, list(found[0]) if found else [], [list(row.values()) for row in found]))
    return "\n".join(filter(None, parts)) or None


def peers(reports):
    found = rows(reports, "Peers", "peer", "job", "loops")
    lines = [list(row.values()) for row in found]
    return table("Beside others, all durable", list(found[0]) if found else [], lines)


main()
