"""The ids of log directories (KIP-858)."""

from __future__ import annotations

import random

from ...metadata.types import LAST_RESERVED_DIRECTORY
from ...wire.schema import uuid_to_text


def random_directory_id(randomness: random.Random) -> bytes:
    """An id for a folder: no reserved one, and none that begins with a hyphen as text (DirectoryId.random)."""
    while True:
        found = randomness.randbytes(16)
        if found > LAST_RESERVED_DIRECTORY and not uuid_to_text(found).startswith("-"):
            return found
