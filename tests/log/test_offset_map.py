"""The map of keys to their newest offsets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.offset_map import ENTRY_SIZE, OffsetMap, memory_for


@given(keys=st.lists(st.binary(max_size=4), max_size=200), load_factor=st.floats(0.1, 1.0))
def test_newest_offset_of_each_key(keys, load_factor):
    offset_map = OffsetMap(memory_for(len(keys), load_factor), load_factor)
    assert all(offset_map.put(key, offset) for offset, key in enumerate(keys))
    newest = {key: offset for offset, key in enumerate(keys)}
    assert {key: offset_map.get(key) for key in newest} == newest
    assert offset_map.get(b"never put") == -1
    assert offset_map.size == len(newest)
    assert offset_map.latest_offset == len(keys) - 1


def test_full():
    offset_map = OffsetMap(10 * ENTRY_SIZE, 0.75)
    count = next(n for n in range(100) if not offset_map.put(b"%d" % n, n))
    assert count == offset_map.capacity == 5  # of 7 slots, the largest prime of at most 10
    assert offset_map.latest_offset == count - 1
    assert offset_map.put(b"0", 50), "a key that is known has its place"
    assert [offset_map.get(b"%d" % n) for n in range(7)] == [50, 1, 2, 3, 4, -1, -1]


@pytest.mark.parametrize(("memory", "load_factor"), [(0, 0.9), (0, 0.0), (1, 1.0)])
def test_there_is_room_for_one_key(memory, load_factor):
    offset_map = OffsetMap(memory, load_factor)
    assert offset_map.put(b"a", 7)
    assert offset_map.get(b"a") == 7
