"""Installs the peers from their registries into target/bench; says of each why it is not there."""

import os
import shutil
import subprocess
import sys

from bench.cluster import HERE, ROOT

TARGET = ROOT / "target/bench"
PEERS = HERE / "peers"


def attempt(*command, **more):
    """Runs a command; returns None, or the last line of what went wrong."""
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=300, **more)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else (done.stderr.strip() or done.stdout.strip() or "failed").splitlines()[-1]


def apt(program, *packages):
    """A Debian package, where its program is missing. No service of it is started."""
    if shutil.which(program):
        return None
    root = [] if os.geteuid() == 0 else ["sudo"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    if not shutil.which("apt-get"):
        return f"{program} is not installed, and there is no apt-get to install it with"
    attempt(*root, "apt-get", "update", "-q")
    wrong = attempt(*root, "apt-get", "install", "-y", "-q", "--no-install-recommends", *packages, env=environment)
    if program == "etcd" and os.path.isdir("/run/systemd/system"):
        attempt(*root, "systemctl", "disable", "--now", "--quiet", "etcd")
    return wrong


def unchanged(stamp, source):
    return stamp.exists() and stamp.read_text() == source.read_text()


def node():
    """graphile-worker, pg-boss and pg."""
    wrong = apt("npm", "nodejs", "npm")
    if wrong:
        return wrong
    folder = TARGET / "node"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(PEERS / "queue.mjs", folder)
    stamp = folder / "installed.json"
    if unchanged(stamp, PEERS / "package.json"):
        return None
    shutil.copy(PEERS / "package.json", folder)
    wrong = attempt("npm", "install", "--no-audit", "--no-fund", cwd=folder)
    if not wrong:
        shutil.copy(PEERS / "package.json", stamp)
    return wrong


def python():
    """procrastinate, langgraph-checkpoint-postgres and psycopg."""
    stamp = TARGET / "python/installed.txt"
    if unchanged(stamp, PEERS / "requirements.txt"):
        return None
    wrong = attempt(sys.executable, "-m", "venv", TARGET / "python")
    if wrong and not apt("python3-venv-is-no-program", "python3-venv"):
        wrong = attempt(sys.executable, "-m", "venv", TARGET / "python")
    wrong = wrong or attempt(TARGET / "python/bin/pip", "install", "-q", "-r", PEERS / "requirements.txt")
    if not wrong:
        shutil.copy(PEERS / "requirements.txt", stamp)
    return wrong


def etcd():
    return apt("etcd", "etcd-server")
