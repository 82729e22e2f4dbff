"""A private PostgreSQL cluster with kslate in it, made by the scripts that `make run` uses, and gone at the end."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "bench"

# What a machine that is meant for it would be given. fsync, full_page_writes and synchronous_commit stay on.
SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "maintenance_work_mem": "512MB",
    # Each part vacuums what it has loaded; in the middle of a round of a second it would be noise.
    "autovacuum": "off",
}


def run(*command, text=None, quiet=False, **more):
    """Runs a command to its end and returns its output; its failure is ours."""
    done = subprocess.run([str(c) for c in command], input=text, capture_output=True, text=True, **more)
    if done.returncode:
        raise SystemExit(f"failed: {command[0]} {' '.join(map(str, command[1:3]))}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout.strip()


class Cluster:
    """The cluster, and the database `kslate` in it."""

    def __init__(self):
        self.dir = Path(tempfile.mkdtemp(prefix="kslate-bench-"))
        os.chmod(self.dir, 0o755)
        self.bin = Path(run("bash", "-c", f". {ROOT}/scripts/lib.sh; use_postgres; echo $PG_BIN"))

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        self.script("start")
        self.home = Path(self.script("home"))
        self.socket = self.url().split("host=")[1].split("&")[0]
        for name, value in SETTINGS.items():
            self.sql(f"alter system set {name} = '{value}'")
        self.restart()
        self.ready("kslate")

    def __exit__(self, *_):
        self.script("remove")
        shutil.rmtree(self.dir, ignore_errors=True)

    def script(self, command, *more):
        """Runs `scripts/cluster`."""
        return run(ROOT / "scripts/cluster", command, self.dir, *more)

    def restart(self, **settings):
        """Restarts the server, with these settings from now on."""
        for name, value in settings.items():
            self.sql(f"alter system set {name} = '{value}'")
        self.script("restart")

    def ready(self, database):
        """Makes kslate, the class that is measured and the floor's tables in a database."""
        run(ROOT / "scripts/database", "--private", "kslate_server", self.url(database=database))
        self.sql(f"select from kslate_class_apply($class${(HERE / 'class.yaml').read_text()}$class$)", database)
        self.sql((HERE / "sql/schema.sql").read_text(), database)

    def url(self, role="kslate", database="kslate"):
        return self.script("url", role, database)

    def environment(self, role="kslate", database="kslate", **options):
        """The variables that lead libpq here; `options` are settings of the session."""
        flags = " ".join(f"-c {name}={value}" for name, value in options.items())
        return {**os.environ, "PGHOST": self.socket, "PGUSER": role, "PGDATABASE": database, "PGOPTIONS": flags}

    def sql(self, text, database="kslate"):
        """Executes SQL as a superuser and returns the rows as lines, columns apart by `|`."""
        return run(
            self.bin / "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-f", "-", text=text, env=self.environment(database=database)
        )

    @property
    def postmaster(self):
        return int((self.home / "data/postmaster.pid").read_text().split()[0])
