"""An etcd of our own: a cluster of one, on free ports of this machine, its log flushed as etcd flushes it."""

import socket
import subprocess
import time
import urllib.error
import urllib.request


class Etcd:
    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        clients, peers = free_port(), free_port()
        self.url = f"http://127.0.0.1:{clients}"
        peer = f"http://127.0.0.1:{peers}"
        self.log = open(self.folder / "etcd.log", "w")
        self.process = subprocess.Popen(
            [
                "etcd",
                "--name",
                "bench",
                "--data-dir",
                self.folder / "etcd",
                "--listen-client-urls",
                self.url,
                "--advertise-client-urls",
                self.url,
                "--listen-peer-urls",
                peer,
                "--initial-advertise-peer-urls",
                peer,
                "--initial-cluster",
                f"bench={peer}",
                "--log-level",
                "error",
            ],
            stdout=self.log,
            stderr=self.log,
        )
        for _ in range(100):
            try:
                urllib.request.urlopen(f"{self.url}/health").read()
                return self
            except urllib.error.URLError:
                time.sleep(0.1)
        raise RuntimeError(f"etcd does not answer: {(self.folder / 'etcd.log').read_text()[-500:]}")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
