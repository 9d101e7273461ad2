"""Decoding of znodes, which any client of ZooKeeper may have written.

What cannot be decoded is logged and ignored: a node of one broker or topic must not leave the cluster without a controller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from ..store.cluster_store import ZnodeWithStat

logger = logging.getLogger(__name__)

T = TypeVar("T")

NOT_UNDERSTOOD = (ValueError, TypeError, KeyError, AttributeError)
"""What decoding a node with unexpected content raises."""


def decoded(path: str, node: ZnodeWithStat, decode: Callable[[bytes], T]) -> T | None:
    """What ``decode`` makes of the node's data; None, and an error in the log, if that cannot be done."""
    try:
        return decode(node.data)
    except NOT_UNDERSTOOD as error:
        logger.error("%s is ignored, because it is not understood: %r", path, error)
        return None
