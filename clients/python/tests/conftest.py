"""Fixtures of all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.deployment import Deployment


@pytest.fixture(scope="session")
def deployment() -> Iterator[Deployment]:
    """A cluster and a server that the tests share; who stops or restarts them starts a `Deployment()` of its own."""
    with Deployment() as started:
        yield started


@pytest.fixture
def record(deployment: Deployment) -> str:
    """A new record of the class `incidents`."""
    return deployment.own_record()
