"""What a reader has in front of him: a server that nobody has used yet."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.deployment import Deployment


@pytest.fixture(scope="session")
def readers() -> Iterator[Deployment]:
    with Deployment() as started:
        yield started


@pytest.fixture
def fresh(readers: Deployment) -> Deployment:
    """A server with the classes of `classes/` and nothing else."""
    readers.anew()
    return readers
