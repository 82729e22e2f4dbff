"""Each peer beside kslate, which is driven by the same language, the same driver and as many loops."""

import json
import subprocess
from dataclasses import replace

from bench.cluster import run as command
from bench.operations import DOCUMENT, fill, operation
from bench.peers import install
from bench.peers.etcd import Etcd
from bench.shim import Shim

QUEUE = (
    "a job's row is changed in place or deleted, without history or versions; kslate writes two rows of history and two versions of "
    "the record per job, and fences out who has lost its lease"
)
DIFFERENCES = {
    "graphile-worker": QUEUE + ". Completed jobs are deleted. Its own worker loop, tasks that do nothing",
    "pg-boss": QUEUE + ". fetch() and complete() one at a time; statements are not prepared",
    "procrastinate": QUEUE + ". Writes an event row per change of state, by trigger",
    "langgraph": "a put writes the checkpoint and its channels' values as rows of their own, in one pipeline; no record lock, no check that "
    "the saver may; a get returns no list of what changed since",
    "etcd": "a key-value store with a log of its own, no PostgreSQL; two requests (grant, compare-and-set), and its leases run out by "
    "themselves; over its JSON gateway. One node",
}


def measure(cluster, report, quick):
    """The part `peers` of the report."""
    table = report.section(
        "Peers",
        "Operations per second of a peer by its own API and of kslate through the same driver with as many loops, all durable "
        "(synchronous_commit on; etcd flushes its log). A number over 1 means that kslate is ahead.",
        ["peer", "job", "loops", "peer, per second", "kslate, per second", "kslate to peer", "what differs"],
    )
    cluster.sql("create database peers", "postgres")
    seconds = 1 if quick else 2
    for loops in (8,) if quick else (1, 8):
        for peer, job, pair in pairs(cluster, loops, seconds):
            try:
                for what, theirs, ours in pair():
                    table.row(peer, what or job, loops, theirs, ours, ours / theirs, DIFFERENCES[peer])
                    report.progress(f"{peer}, {what or job}, {loops} loops: {theirs:.0f}/s, kslate {ours:.0f}/s")
            except Missing as missing:
                table.row(peer, job, loops, None, None, None, f"not measured: {missing}")
                report.progress(f"{peer}: not measured: {missing}")
    cluster.sql("drop database peers with (force)", "postgres")


def some_records(cluster):
    """More open tasks than the few seconds of a peer can claim."""
    fill(cluster, replace(operation("claim"), records=16_384), "kslate")


class Missing(Exception):
    """A peer that could not be installed or run, and why."""


def pairs(cluster, loops, seconds):
    """Each peer with what measures it and us."""
    job = "claim and complete"
    return [
        ("graphile-worker", job, lambda: queue(cluster, install.node, node, "graphile-worker", loops, seconds)),
        ("pg-boss", job, lambda: queue(cluster, install.node, node, "pg-boss", loops, seconds)),
        ("procrastinate", job, lambda: queue(cluster, install.python, python, "procrastinate", loops, seconds)),
        ("langgraph", "checkpoint put and get", lambda: checkpoints(cluster, loops, seconds)),
        ("etcd", "lease with compare-and-set", lambda: leases(cluster, loops, seconds)),
    ]


def node(script_arguments, environment):
    return driver(["node", "queue.mjs", *script_arguments], environment, install.TARGET / "node")


def python(script_arguments, environment, script="jobs.py"):
    return driver([install.TARGET / "python/bin/python", install.PEERS / script, *script_arguments], environment)


def driver(words, environment, folder=None):
    done = subprocess.run(list(map(str, words)), env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Missing((done.stderr.strip() or "it failed").splitlines()[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])


def rate(result):
    if not result["done"]:
        raise Missing("nothing was done in the time that was given")
    return result["done"] / result["seconds"]


def there(installer):
    wrong = installer()
    if wrong:
        raise Missing(wrong)


def queue(cluster, installer, language, peer, loops, seconds):
    there(installer)
    theirs = language([peer, loops, seconds], cluster.environment("kslate", "peers"))
    some_records(cluster)
    ours = language(["kslate", loops, seconds], cluster.environment("bench"))
    yield None, rate(theirs), rate(ours)


def checkpoints(cluster, loops, seconds):
    there(install.python)
    theirs = python(["langgraph", loops, seconds, DOCUMENT], cluster.environment("kslate", "peers"), "checkpoints.py")
    some_records(cluster)
    ours = python(["kslate", loops, seconds, DOCUMENT], cluster.environment("bench"), "checkpoints.py")
    for what in ("put", "get"):
        yield f"checkpoint {what}", rate(theirs[what]), rate(ours[what])


def leases(cluster, loops, seconds):
    there(install.etcd)
    there(install.python)
    with Etcd(cluster.dir) as etcd:
        theirs = python(["etcd", loops, seconds, etcd.url], cluster.environment(), "leases.py")
    command("rm", "-rf", cluster.dir / "etcd")
    some_records(cluster)
    with Shim(cluster) as shim:
        ours = python(["kslate", loops, seconds, shim.url], cluster.environment(), "leases.py")
    yield None, rate(theirs), rate(ours)
