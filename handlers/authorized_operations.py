"""What a client may do, as a bit field of operations (KIP-430). No client is restricted, so it is all that a resource knows.

Bits are numbered like Kafka's AclOperation: 3 READ, 4 WRITE, 5 CREATE, 6 DELETE, 7 ALTER, 8 DESCRIBE, 9 CLUSTER_ACTION,
10 DESCRIBE_CONFIGS, 11 ALTER_CONFIGS, 12 IDEMPOTENT_WRITE. ``NOT_ASKED`` is the answer when the client did not ask.
"""

from __future__ import annotations

NOT_ASKED = -(1 << 31)
TOPIC_OPERATIONS = sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))
