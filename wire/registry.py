"""Lookup of message classes by API key, importing the declaring module at first use."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from .api_keys import ApiKey
from .schema import Message

UNDECLARED = frozenset(
    {
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    }
)
"""Keys whose messages are not declared: only share coordinators exchange them."""

DECLARED = tuple(key for key in ApiKey if key not in UNDECLARED)


@cache
def request_class(key: ApiKey) -> type[Message]:
    """The class of the request. Raises KeyError for a key that is not declared."""
    return _find(key, "Request")


@cache
def response_class(key: ApiKey) -> type[Message]:
    """The class of the response. Raises KeyError for a key that is not declared."""
    return _find(key, "Response")


def _find(key: ApiKey, side: str) -> type[Message]:
    if key in UNDECLARED:
        raise KeyError(key)
    module = import_module(f".messages.{key.name.lower()}", __package__)
    found: type[Message] = getattr(module, key.title + side)
    return found
