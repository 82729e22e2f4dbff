"""The package installs into a fresh virtual environment out of a checkout that it may not write to."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.deployment import ROOT, Deployment

PROGRAM = """
import importlib.metadata, kslate
with kslate.Client() as client:
    print(importlib.metadata.version("kslate"), client.whoami().identity, kslate.__file__)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy that nobody may write to, without what a build or a test would have left."""
    copy = tmp_path / "checkout"
    ignored = shutil.ignore_patterns("__pycache__", ".*", "tests", "build", "dist")
    shutil.copytree(ROOT / "clients/python", copy, ignore=ignored)
    for path in (copy, *copy.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    return copy


def test_pip_install(readers: Deployment, checkout: Path, tmp_path: Path) -> None:
    before = sorted(checkout.rglob("*"))
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = environment / "bin/pip"
    install = [str(pip), "install", "--quiet", "--disable-pip-version-check", str(checkout)]
    subprocess.run(install, check=True)
    subprocess.run(install, check=True)
    told = subprocess.run(
        [environment / "bin/python", "-c", PROGRAM],
        cwd=tmp_path,
        env=readers.environment("w1-token"),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    version, identity, file = told.stdout.split()
    assert (version, identity) == ("0.2.0", "apikey:remediator/worker-1")
    assert Path(file).is_relative_to(environment)
    assert (Path(file).parent / "py.typed").exists()
    assert sorted(checkout.rglob("*")) == before
