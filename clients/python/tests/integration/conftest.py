"""Clients of the deployment that the tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from support.deployment import Deployment

from kslate import Client

Connect = Callable[[str], Client]


@pytest.fixture
def connect(deployment: Deployment) -> Iterator[Connect]:
    """`connect("w1-token")` is a client, closed after the test."""
    with ExitStack() as stack:
        yield lambda token: stack.enter_context(Client(deployment.server, token))


@pytest.fixture
def diagnoser(connect: Connect) -> Client:
    return connect("diag-token")


@pytest.fixture
def w1(connect: Connect) -> Client:
    return connect("w1-token")


@pytest.fixture
def w2(connect: Connect) -> Client:
    return connect("w2-token")


@pytest.fixture
def admin(connect: Connect) -> Client:
    return connect("admin-token")
