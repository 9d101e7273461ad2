"""The offset map of a compaction: the newest offset of each key in a log's dirty part, in memory of a fixed size.

Keys are known by their MD5 only, so an entry has 24 bytes however long its key is: 16 of the digest, 8 of the offset
plus 1, big-endian; all zero is an empty slot. Open addressing in one ``bytearray``: the first half of the digest says
where to look, the second half how far to go on; the number of slots is prime, so that every step meets every slot. The
map is full when ``load_factor`` of its slots are taken; then the rest of the log waits for another cleaning.
"""

from __future__ import annotations

from hashlib import md5
from math import isqrt
from struct import Struct

ENTRY_SIZE = 24
_DIGEST_SIZE = 16
_HALVES = Struct(">QQ")
_OFFSET = Struct(">Q")
_EMPTY = bytes(_DIGEST_SIZE)
_MIN_SLOTS = 3


class OffsetMap:
    """A hash table from the digests of keys to offsets."""

    __slots__ = ("_memory", "_slots", "capacity", "latest_offset", "size")

    def __init__(self, memory: int, load_factor: float) -> None:
        """``memory`` bytes; ``load_factor`` is from 0 to 1. There is room for one key at least."""
        self._slots = _largest_prime(max(memory // ENTRY_SIZE, _MIN_SLOTS))
        self._memory = bytearray(self._slots * ENTRY_SIZE)
        # One slot at least stays empty, since ``_find`` ends its search there.
        self.capacity = min(max(int(self._slots * load_factor), 1), self._slots - 1)
        """The most keys that there is room for."""
        self.size = 0
        """The keys that are in it."""
        self.latest_offset = -1
        """Every offset up to this one has been put; -1: none yet."""

    def put(self, key: bytes, offset: int) -> bool:
        """Note that ``key`` is at ``offset``, which ascends; False when the map is full and the key is new."""
        digest = md5(key, usedforsecurity=False).digest()
        memory = self._memory
        position, is_known = self._find(digest)
        if not is_known:
            if self.size >= self.capacity:
                return False
            self.size += 1
            memory[position : position + _DIGEST_SIZE] = digest
        _OFFSET.pack_into(memory, position + _DIGEST_SIZE, offset + 1)
        self.latest_offset = offset
        return True

    def get(self, key: bytes) -> int:
        """The newest offset of ``key``, -1 when it was never put."""
        position, is_known = self._find(md5(key, usedforsecurity=False).digest())
        if not is_known:
            return -1
        offset: int = _OFFSET.unpack_from(self._memory, position + _DIGEST_SIZE)[0]
        return offset - 1

    def _find(self, digest: bytes) -> tuple[int, bool]:
        """Where the digest is, or the empty slot where it belongs, and which of the two."""
        memory, slots = self._memory, self._slots
        first, second = _HALVES.unpack(digest)
        slot = first % slots
        step = 1 + second % (slots - 1)
        while True:
            position = slot * ENTRY_SIZE
            found = memory[position : position + _DIGEST_SIZE]
            if found == digest:
                return position, True
            if found == _EMPTY:
                return position, False
            slot = (slot + step) % slots


def memory_for(keys: int, load_factor: float) -> int:
    """Bytes that are enough for ``keys`` keys."""
    if load_factor <= 0:
        return 1 << 62
    slots = int(keys / load_factor) + _MIN_SLOTS
    return _smallest_prime(slots) * ENTRY_SIZE


def _is_prime(number: int) -> bool:
    return number % 2 == 1 and all(number % factor for factor in range(3, isqrt(number) + 1, 2))


def _largest_prime(at_most: int) -> int:
    return next(number for number in range(at_most, 1, -1) if _is_prime(number))


def _smallest_prime(at_least: int) -> int:
    return next(number for number in range(at_least, 2 * at_least) if _is_prime(number))
