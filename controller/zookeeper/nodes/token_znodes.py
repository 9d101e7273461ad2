"""The znode paths of delegation tokens and of their change notifications, as in Kafka 3.9."""

from __future__ import annotations

ROOT = "/delegation_token"
TOKENS = ROOT + "/tokens"
CHANGES = ROOT + "/token_changes"
CHANGE_PREFIX = CHANGES + "/token_change_"
TOKEN_PATHS = (ROOT, CHANGES, TOKENS)
"""Nodes that exist, without data, in a cluster with delegation tokens; parents first."""
