"""Drivers that are programs: what becomes of one that ends by itself."""

from __future__ import annotations

import sys

import pytest

from ottla.compat_tests.clients import pipe
from ottla.compat_tests.session import eventually


def test_a_driver_that_ends_by_itself() -> None:
    client = pipe.Client("dies", [sys.executable, "-c", "import sys; sys.stdin.readline()"], "127.0.0.1:1")
    assert not client.has_ended()
    with pytest.raises(RuntimeError, match="has ended"):
        client.admin()
    assert eventually(client.has_ended)
    with pytest.raises(BrokenPipeError):
        client.admin()
    client.close()
