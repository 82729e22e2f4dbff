"""`kslate serve` as a child of ours, and wrk against it."""

import os
import re
import subprocess
from dataclasses import dataclass

from bench import cpu
from bench.cluster import HERE, ROOT
from bench.operations import DOCUMENT, PLAN
from bench.turns import Failed

TOKEN = "bench-token"
UNITS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000}


@dataclass
class Load:
    """tps; p50 and p99 in milliseconds; the server's CPU per request in microseconds; how many requests there were."""

    tps: float
    p50: float
    p99: float
    cpu: float
    requests: int


class Shim:
    """The server, on a free port of this machine."""

    def __init__(self, cluster, sync=True):
        cluster.sql(f"alter role kslate_server set synchronous_commit = {'on' if sync else 'off'}")
        keys = cluster.dir / "keys.yaml"
        keys.write_text(f"{TOKEN}: bench\n")
        environment = {
            **os.environ,
            "DATABASE_URL": cluster.url("kslate_server"),
            "KSLATE_APIKEYS": str(keys),
            "KSLATE_LISTEN": "127.0.0.1:0",
            "KSLATE_LOG": "warn",
        }
        self.process = subprocess.Popen([ROOT / "bin/kslate", "serve"], env=environment, stdout=subprocess.PIPE, text=True)
        self.url = re.search(r"http://\S+", self.process.stdout.readline())[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def resident(self):
        return cpu.resident(self.process.pid)

    def load(self, name, variables, clients, seconds=1):
        """Sends an operation's requests over so many connections. `variables` are those of `Operation.variables` for the threads."""
        threads = min(clients, 2)
        document = PLAN if name == "write" else DOCUMENT
        words = [
            "wrk",
            "--latency",
            "-t",
            threads,
            "-c",
            clients,
            "-d",
            f"{seconds}s",
            "--timeout",
            "20s",
            "-s",
            HERE / "http.lua",
            self.url,
            "--",
            name,
            TOKEN,
            variables["first"],
            variables["share"],
            threads,
            document,
        ]
        before = cpu.spent(self.process.pid)
        out = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True).stdout
        spent = cpu.spent(self.process.pid) - before
        if "Non-2xx" in out or "Socket errors" in out:
            raise Failed(f"wrk {name}:\n{out}")
        requests = int(re.search(r"(\d+) requests in", out)[1])

        def milliseconds(percent):
            number, unit = re.search(rf"\s{percent}%\s+([\d.]+)(\w+)", out).groups()
            return float(number) * UNITS[unit]

        return Load(
            float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]),
            milliseconds(50),
            milliseconds(99),
            spent / requests * 1e6,
            requests,
        )
