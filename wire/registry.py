"""Lookup of message classes by API key, importing the declaring module at first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from .api_keys import ApiKey
from .schema import Message


@cache
def request_class(key: ApiKey) -> type[Message]:
    """The class of the request."""
    return _find(key, "Request")


@cache
def response_class(key: ApiKey) -> type[Message]:
    """The class of the response."""
    return _find(key, "Response")


def _find(key: ApiKey, side: str) -> type[Message]:
    module = import_module(f".messages.{key.name.lower()}", __package__)
    found: type[Message] = getattr(module, key.title + side)
    return found
