"""Contention: one record, one task, and many leases that are renewed."""

from dataclasses import replace

from bench.cluster import HERE
from bench.operations import FIRST, fill, operation
from bench.pgbench import Pgbench
from bench.turns import alone

CLAIM = f"""select (claim_id is not null)::int as won, coalesce(claim_id, '00000000-0000-0000-0000-000000000000') as claim_id
from bench.try_claim('bench/{FIRST}') claim_id \\gset
\\if :won
select * from kslate_release('bench/{FIRST}', 'task', :claim_id) \\gset
\\endif
"""


def measure(cluster, report, quick):
    """The part `contention` of the report."""
    seconds = 0.65 if quick else 2.65
    cluster.sql((HERE / "sql/contention.sql").read_text())
    hot_record(cluster, report, seconds)
    one_task(cluster, report, seconds)
    renewals(cluster, report, seconds)


def hot_record(cluster, report, seconds):
    """32 clients append to the log of one record."""
    table = report.section(
        "A hot record",
        "Appends to one record: its changes come one after the other, each with its own commit.",
        ["clients", "sync", "appends per second", "p50 ms", "p99 ms"],
    )
    op = replace(operation("append"), slices=1, records=1)
    script = op.script().replace("\\set n :first + :client_id + :clients * (:k % :share)", "\\set n :first")
    for clients, sync in ((1, True), (32, True), (1, False), (32, False)):
        fill(cluster, op, "kslate")
        m = alone(Pgbench(cluster, script, clients, sync, {**op.variables(1), "share": 1}), seconds)
        table.row(clients, "on" if sync else "off", m.tps, m.p50, m.p99)
        report.progress(f"hot record, {clients} clients: {m.tps:.0f} appends/s")


def one_task(cluster, report, seconds):
    """64 clients claim one task; whoever gets it gives it back at once."""
    table = report.section(
        "One task",
        "64 clients claim one task as fast as they can, whoever gets it releases it; all others are answered HELD.",
        ["sync", "claims asked per second", "granted", "answered HELD", "p50 ms", "p99 ms"],
    )
    op = replace(operation("claim"), records=1)
    seconds = max(seconds, 1.65)
    for sync in (True, False):
        fill(cluster, op, "kslate")
        asking = Pgbench(cluster, CLAIM, 64, sync)
        m = alone(asking, seconds)
        epoch, claims, releases = cluster.sql(
            f"""select (select epoch from kslate.claim where record = 'bench/{FIRST}'), count(*) filter (where op = 'claim'),
            count(*) filter (where op = 'release') from kslate.history where record = 'bench/{FIRST}'"""
        ).split("|")
        if not epoch == claims or int(claims) - int(releases) not in (0, 1):
            raise SystemExit(f"epoch {epoch}, {claims} claims and {releases} releases in history do not fit together")
        share = int(claims) / asking.total
        table.row("on" if sync else "off", m.tps, share, 1 - share, m.p50, m.p99)
        report.progress(f"one task, 64 clients: {m.tps:.0f} claims/s asked, {epoch} granted")


def renewals(cluster, report, seconds):
    """Ten thousand live leases, renewed over and over."""
    table = report.section(
        "Renewals",
        "Ten thousand live leases, renewed by 32 clients. Wanted: no row of history; HOT updates need no vacuum.",
        ["renewals", "per second", "HOT", "dead tuples left", "rows of history"],
    )
    op = replace(operation("renew"), slices=1, records=10_240)
    fill(cluster, op, "kslate")
    before = counters(cluster)
    m = alone(Pgbench(cluster, op.script(), 32, False, op.variables(32)), seconds)
    updated, hot, _, history = (now - then for now, then in zip(counters(cluster), before))
    dead = counters(cluster)[2]
    table.row(updated, m.tps, hot / updated, dead, history)
    report.progress(f"renewals: {m.tps:.0f}/s, {hot / updated:.2f} HOT, {dead} dead tuples, {history} rows of history")


def counters(cluster):
    """Updates, HOT updates and dead tuples of kslate.claim, rows of kslate.history."""
    return [
        int(number)
        for number in cluster.sql(
            """select n_tup_upd, n_tup_hot_upd, n_dead_tup, (select count(*) from kslate.history)
        from pg_stat_user_tables where relid = 'kslate.claim'::regclass"""
        ).split("|")
    ]
