from __future__ import annotations

import random

import pytest

from ottla.metadata.persistent_dict import PersistentDict


@pytest.mark.parametrize("seed", range(50))
def test_every_version_stays_what_it_was(seed: int) -> None:
    """However versions are made and read: each is compared with a copy from the time when it was made."""
    randomness = random.Random(seed)
    versions: list[tuple[PersistentDict[int, int], dict[int, int]]] = [(PersistentDict({0: 0}), {0: 0})]
    for value in range(60):
        version, copy = randomness.choice(versions) if randomness.random() < 0.3 else versions[-1]
        changes = {
            randomness.randrange(8): value if randomness.random() < 0.6 else None
            for _ in range(randomness.randrange(4))
        }
        after = {key: value for key, value in {**copy, **changes}.items() if value is not None}
        versions.append((version.changed(changes), after))
        for read, expected in randomness.sample(versions, min(3, len(versions))):
            assert dict(read.items()) == dict(read) == expected
            assert (len(read), read.get(3), 3 in read) == (len(expected), expected.get(3), 3 in expected)
    for version, copy in versions:
        assert version == copy


def test_a_version_can_be_gone_through_while_the_next_ones_are_made() -> None:
    version = PersistentDict({number: str(number) for number in range(5)})
    seen, newest = [], version
    for key, value in version.items():
        newest = newest.changed({key: None, key + 10: value})
        seen.append((key, value))
    assert seen == [(number, str(number)) for number in range(5)]
    assert dict(newest) == {number + 10: str(number) for number in range(5)}


def test_what_stays_keeps_its_place() -> None:
    version = PersistentDict({"b": 1, "a": 2}).changed({"c": 3}).changed({"b": 4})
    assert list(version.items()) == [("b", 4), ("a", 2), ("c", 3)]


@pytest.mark.parametrize("changes", [{}, {0: -1}, {0: None}, {-1: None}], ids=["new", "known", "gone", "unknown"])
def test_many_new_keys_at_once_are_taken_back_for_older_versions(changes: dict[int, int | None]) -> None:
    before = PersistentDict({0: 0})
    many = {number: number for number in range(1, 500)}
    after = before.changed({**many, **changes})
    expected = {0: 0, **many, **changes}
    assert dict(after) == {key: value for key, value in expected.items() if value is not None}
    assert dict(before) == {0: 0}
