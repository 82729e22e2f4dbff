"""Fixtures of all tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from support.deployment import Deployment

# A shell ignores SIGINT in what it runs in the background, and so would all that is tested here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def deployment() -> Iterator[Deployment]:
    """A cluster and a server that the tests share; who stops or restarts them starts a `Deployment()` of its own."""
    with Deployment() as started:
        yield started


@pytest.fixture
def record(deployment: Deployment) -> str:
    """A new record of the class `incidents`."""
    return deployment.own_record()
