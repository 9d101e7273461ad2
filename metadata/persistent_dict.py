"""An immutable mapping whose next version costs time in proportion to the changes, not to its size.

The newest version has the dict; making the next one hands the dict on, changed in place, and leaves behind what is needed to undo
that. An older version that is still read copies the newest and undoes the changes, once. So whoever follows the newest version
pays for a dict, and versions that nobody reads cost nothing. (Baker, "Shallow Binding Makes Functional Arrays Fast", 1991.)

Versions belong to one thread.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Any = object()
_MANY = 100
"""From so many new keys on, it pays to take them over at once."""


class PersistentDict(Mapping[K, V]):
    """One version. It takes the dict that it is made of: nobody else may change that any more."""

    __slots__ = ("_items", "_newer", "_undo")

    def __init__(self, items: dict[K, V] | None = None) -> None:
        self._items: dict[K, V] | None = {} if items is None else items
        self._newer: PersistentDict[K, V] | None = None
        self._undo: Mapping[K, V] = {}

    def changed(self, changes: Mapping[K, V | None]) -> PersistentDict[K, V]:
        """The next version; None removes a key."""
        items = self.newest()
        undo: dict[K, V]
        if len(changes) >= _MANY and items.keys().isdisjoint(changes) and None not in changes.values():
            undo = dict.fromkeys(changes, _ABSENT)
            items.update(changes)  # type: ignore[arg-type]
        else:
            undo = {key: items.get(key, _ABSENT) for key in changes}
            for key, value in changes.items():
                if value is None:
                    items.pop(key, None)
                else:
                    items[key] = value
        newer = PersistentDict(items)
        self._items, self._newer, self._undo = None, newer, undo
        return newer

    def newest(self) -> dict[K, V]:
        """The items as a dict that changes with the next version, for those who look things up and keep nothing."""
        if self._items is None:
            versions: list[PersistentDict[K, V]] = []
            version: PersistentDict[K, V] = self
            while version._items is None:
                versions.append(version)
                assert version._newer is not None
                version = version._newer
            self._items = dict(version._items)
            for older in reversed(versions):
                for key, value in older._undo.items():
                    if value is _ABSENT:
                        self._items.pop(key, None)
                    else:
                        self._items[key] = value
            self._newer, self._undo = None, {}  # it stands alone now, and no later change is undone for it
        return self._items

    def __getitem__(self, key: K) -> V:
        return self.newest()[key]

    def __contains__(self, key: object) -> bool:
        return key in self.newest()

    def __len__(self) -> int:
        return len(self.newest())

    # Copies, because the dict changes in place with the next version, which would break a loop over it.

    def __iter__(self) -> Iterator[K]:
        return iter(list(self.newest()))

    def keys(self) -> KeysView[K]:
        return dict(self.newest()).keys()

    def values(self) -> ValuesView[V]:
        return dict(self.newest()).values()

    def items(self) -> ItemsView[K, V]:
        return dict(self.newest()).items()

    def __repr__(self) -> str:
        return f"PersistentDict({self.newest()!r})"
