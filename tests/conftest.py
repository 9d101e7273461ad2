"""Runs ``async def test_...`` functions with trio; one trio run per test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Generator
from typing import Any

import pytest
import trio


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    function = pyfuncitem.obj
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        def run(**arguments: Any) -> None:
            trio.run(functools.partial(function, **arguments))

        pyfuncitem.obj = run
    try:
        return (yield)
    finally:
        pyfuncitem.obj = function
