"""checkpoints.py PEER CONCURRENCY SECONDS DOCUMENT: saves and loads checkpoints over psycopg, a thread and a connection each.

Prints {"put": {"done", "seconds"}, "get": …}.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
from psycopg.rows import dict_row

FIRST = 100_000_000_000


class LangGraph:
    """langgraph-checkpoint-postgres: a thread of its own for each of our threads."""

    @staticmethod
    def prepare(connection):
        from langgraph.checkpoint.postgres import PostgresSaver

        PostgresSaver(connection).setup()

    def __init__(self, connection, number, document):
        from langgraph.checkpoint.base import empty_checkpoint
        from langgraph.checkpoint.postgres import PostgresSaver

        self.saver, self.document, self.empty = PostgresSaver(connection), document, empty_checkpoint
        self.config = {"configurable": {"thread_id": f"thread-{number}", "checkpoint_ns": ""}}
        self.version = 0

    def put(self):
        self.version += 1
        checkpoint = {
            **self.empty(),
            "channel_values": {"state": self.document},
            "channel_versions": {"state": str(self.version)},
        }
        self.saver.put(self.config, checkpoint, {"source": "loop", "step": self.version}, {"state": str(self.version)})

    def get(self):
        assert self.saver.get_tuple(self.config).checkpoint["channel_values"]["state"] == self.document


class Kslate:
    """kslate: a record for each thread."""

    @staticmethod
    def prepare(connection):
        pass

    def __init__(self, connection, number, document):
        self.connection, self.document, self.record = connection, document, f"bench/{FIRST + number}"

    def put(self):
        values = (self.record, json.dumps(self.document))
        self.connection.execute("select * from kslate_checkpoint_save(%s, %s)", values).fetchone()

    def get(self):
        loaded = self.connection.execute("select * from kslate_checkpoint_load(%s)", (self.record,)).fetchone()
        assert loaded["document"] == self.document


def loops(steps, seconds):
    begin, done = time.perf_counter(), [0] * len(steps)

    def loop(number):
        while time.perf_counter() - begin < seconds:
            steps[number]()
            done[number] += 1

    with ThreadPoolExecutor(len(steps)) as pool:
        list(pool.map(loop, range(len(steps))))  # raises what a thread has raised
    return {"done": sum(done), "seconds": time.perf_counter() - begin}


peer, concurrency, seconds, document = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), json.loads(sys.argv[4])
make = {"langgraph": LangGraph, "kslate": Kslate}[peer]
connections = [psycopg.connect(autocommit=True, prepare_threshold=0, row_factory=dict_row) for _ in range(concurrency)]
make.prepare(connections[0])
workers = [make(connection, number, document) for number, connection in enumerate(connections)]
for worker in workers:
    worker.put()
print(json.dumps({what: loops([getattr(worker, what) for worker in workers], seconds) for what in ("put", "get")}))
