"""Where Kafka 3.9 in ZooKeeper mode keeps delegation tokens: their nodes, and the notifications of changes."""

from __future__ import annotations

ROOT = "/delegation_token"
TOKENS = ROOT + "/tokens"
CHANGES = ROOT + "/token_changes"
CHANGE_PREFIX = CHANGES + "/token_change_"
TOKEN_PATHS = (ROOT, CHANGES, TOKENS)
"""Nodes that exist, without data, in a cluster with delegation tokens; parents first."""
