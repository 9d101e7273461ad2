"""The ZooKeeper ACLs of znodes that brokers create (``zookeeper.set.acl``; Kafka's ZkData ``defaultAcls``)."""

from __future__ import annotations

from enum import Enum

_SENSITIVE_PATHS = ("/config/users", "/config/brokers", "/delegation_token/tokens")
_OPEN_PATH = "/consumers"
"""Consumers of old Kafka versions make nodes here."""


class ZnodeAccess(Enum):
    """Who may change a node, its creator always among them."""

    ALL = "every client changes it"
    READ_BY_ALL = "every client reads it"
    CREATOR = "no other client even reads it"


def access(path: str, *, is_protected: bool) -> ZnodeAccess:
    """The access to a node that is made at ``path``."""
    if not is_protected or path == _OPEN_PATH:
        return ZnodeAccess.ALL
    return ZnodeAccess.CREATOR if path.startswith(_SENSITIVE_PATHS) else ZnodeAccess.READ_BY_ALL
