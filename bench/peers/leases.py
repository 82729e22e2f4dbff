"""leases.py PEER CONCURRENCY SECONDS URL: takes leases over HTTP, a thread and a kept connection each.

Prints {"done", "seconds"}. etcd: a lease is granted, then the key is put under it if nobody has it: two requests. kslate: one claim.
"""

import base64
import http.client
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

FIRST = 100_000_000_000
peer, concurrency, seconds, url = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
address = urlsplit(url)


def post(connection, path, body):
    headers = {"Content-Type": "application/json"}
    if peer == "kslate":
        headers["Authorization"] = "Bearer bench-token"
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: {answer.status} {text}")
    return json.loads(text)


def etcd(connection, number):
    key = base64.b64encode(f"bench/{number}".encode()).decode()
    lease = post(connection, "/v3/lease/grant", {"TTL": 60})["ID"]
    put = {"request_put": {"key": key, "value": base64.b64encode(b"bench").decode(), "lease": lease}}
    free = {"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}
    assert post(connection, "/v3/kv/txn", {"compare": [free], "success": [put]})["succeeded"]


def kslate(connection, number):
    post(connection, f"/v1/records/bench/{FIRST + number}/fields/task/claim", {"lease_seconds": 60})


def loop(thread):
    connection = http.client.HTTPConnection(address.hostname, address.port)
    number = thread
    while time.perf_counter() - begin < seconds:
        {"etcd": etcd, "kslate": kslate}[peer](connection, number)
        number += concurrency
        done[thread] += 1


done = [0] * concurrency
begin = time.perf_counter()
with ThreadPoolExecutor(concurrency) as pool:
    list(pool.map(loop, range(concurrency)))  # raises what a thread has raised
print(json.dumps({"done": sum(done), "seconds": time.perf_counter() - begin}))
