"""The ACLs in ZooKeeper: read, published, watched and changed by every broker with an authorizer.

A broker that changes a pattern's entries writes their node, on the condition that it is as it was read, and with it a
notification; any broker does that, not the controller (AclAuthorizer ``updateResourceAcls``). All brokers, those of Apache Kafka
too, watch the two folders of notifications. Between a loss of watches and the next look a broker goes by what it knew, as Kafka's
do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

import trio

from ...base.errors import ErrorCode, KafkaError
from ...base.seams import Clock
from ...metadata.delta import ClusterDelta
from ...replication.metadata_cache import MetadataCache
from ...security.acl import (
    RESOURCE_TYPES,
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    ResourcePattern,
)
from .nodes import acl_znodes
from .nodes.decoding import decoded
from .nodes.notifications import Notifications
from .nodes.watch_loop import WatchLoop
from .store.cluster_store import (
    BadVersionError,
    ClusterStore,
    ConnectionLossError,
    Create,
    Delete,
    NodeExistsError,
    NoNodeError,
    Operation,
    Set,
    StoreError,
    StoreFailedError,
    ensure_paths,
)

logger = logging.getLogger(__name__)

Entries = frozenset[AclEntry]
Transform = Callable[[Entries], Entries]

_MOST_TRIES = 11
_RETRY_SECONDS = 0.1
_KINDS = (PatternType.LITERAL, PatternType.PREFIXED)
_CHANGES = (
    (acl_znodes.LITERAL_CHANGES, acl_znodes.decode_literal_change),
    (acl_znodes.PREFIXED_CHANGES, acl_znodes.decode_prefixed_change),
)


class AclStore:
    """``start`` once, then ``run`` in a task of its own. What is read goes to ``metadata``."""

    def __init__(self, store: ClusterStore, clock: Clock, metadata: MetadataCache) -> None:
        self._store = store
        self._metadata = metadata
        self._watches = WatchLoop("access rules")
        self._changes = [
            (Notifications(store, clock, folder, self._watches.watch), decode) for folder, decode in _CHANGES
        ]

    async def start(self) -> None:
        """Make the folders, and read everything, at first and again whenever watches may have been lost. Raises StoreError."""
        await ensure_paths(self._store, acl_znodes.PATHS)
        await self._read_all()

    async def _read_all(self) -> None:
        # Before the read: what is changed while it is under way leaves a notification that does not count as seen.
        for changes, _ in self._changes:
            await changes.skip()
        patterns = dict.fromkeys(self._metadata.image.acls)
        for pattern_type in _KINDS:
            for resource_type in RESOURCE_TYPES:
                names = await self._store.children(acl_znodes.folder(pattern_type, resource_type))
                patterns.update((ResourcePattern(resource_type, name, pattern_type), None) for name in names)
        await self._read(patterns)

    async def _read(self, patterns: Iterable[ResourcePattern]) -> None:
        """Publish what the store holds of these patterns.

        A node that is not understood at all leaves what was known of the pattern; if nothing was, only super users may use its
        resources.
        """
        wanted = list(patterns)
        found: dict[ResourcePattern, Entries] = {}
        paths = [acl_znodes.path(pattern) for pattern in wanted]
        for pattern, path, node in zip(wanted, paths, await self._store.get_many(paths), strict=True):
            if node is None:
                found[pattern] = frozenset()
                continue
            read = acl_znodes.read_entries(node.data)
            if read.errors:
                logger.error("%s is not understood in full: %s", path, "; ".join(read.errors))
            if read.entries is not None:
                found[pattern] = read.entries
            elif pattern not in self._metadata.image.acls:
                found[pattern] = frozenset({acl_znodes.DENY_ALL})
        self._publish(found)

    def _publish(self, found: Mapping[ResourcePattern, Entries]) -> None:
        """Publish what differs from what is known of these patterns."""
        known = self._metadata.image.acls
        changed = {pattern: entries for pattern, entries in found.items() if entries != known.get(pattern, frozenset())}
        if changed:
            self._metadata.publish(ClusterDelta(acls=changed))

    def resync(self) -> None:
        """Watches may have been lost."""
        self._watches.resync()

    async def run(self) -> None:
        """Follow the changes that others make, for as long as there is a store to follow."""
        try:
            await self._watches.run(self._follow, self.start)
        except StoreFailedError as error:
            logger.error("Changes of access rules are not followed any more: %s", error)

    async def _follow(self) -> None:
        for changes, decode in self._changes:
            named = [decoded(path, node, decode) for path, node in await changes.unseen()]
            await self._read(dict.fromkeys(each for each in named if each is not None and _is_stored(each)))
            await changes.remove_old()

    # --- changes ------------------------------------------------------------------------------------------------------

    async def create(self, bindings: Sequence[AclBinding]) -> list[KafkaError | None]:
        """Add rules; why one was not added, in their order. A rule that is there already is added like any other."""
        by_pattern: dict[ResourcePattern, set[AclEntry]] = {}
        for binding in bindings:
            by_pattern.setdefault(binding.pattern, set()).add(binding.entry)
        outcome: dict[ResourcePattern, KafkaError | None] = {}
        for pattern, added in by_pattern.items():
            outcome[pattern] = await self._change(pattern, lambda before, added=added: before | added)  # type: ignore[misc]
        return [outcome[binding.pattern] for binding in bindings]

    async def delete(self, filters: Sequence[AclFilter]) -> list[list[tuple[AclBinding, KafkaError | None]]]:
        """Remove what the filters match: for each filter what it was the first to match, each with the error if it stayed."""
        found: list[list[tuple[AclBinding, KafkaError | None]]] = [[] for _ in filters]
        patterns = dict.fromkeys(self._metadata.image.acls)
        patterns.update((named, None) for wanted in filters for named in wanted.patterns() if _is_stored(named))
        for pattern in patterns:
            matching = [(number, each) for number, each in enumerate(filters) if each.matches_pattern(pattern)]
            if not matching:
                continue
            removed: dict[AclEntry, int] = {}

            def without(
                before: Entries,
                matching: list[tuple[int, AclFilter]] = matching,
                removed: dict[AclEntry, int] = removed,
            ) -> Entries:
                removed.clear()  # this is called again where another broker was faster
                for entry in sorted(before):
                    first = next((number for number, each in matching if each.matches_entry(entry)), None)
                    if first is not None:
                        removed[entry] = first
                return before - removed.keys()

            error = await self._change(pattern, without)
            for entry, number in removed.items():
                found[number].append((AclBinding(pattern, entry), error))
        return found

    async def _change(self, pattern: ResourcePattern, transform: Transform) -> KafkaError | None:
        """Replace the entries of a pattern by what ``transform`` makes of them, which is called again if others were faster."""
        try:
            for _ in range(_MOST_TRIES):
                if await self._try_change(pattern, transform):
                    return None
                await trio.sleep(_RETRY_SECONDS)
        except StoreError as error:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
        return KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"other brokers changed the rules of {pattern.name} at each try"
        )

    async def _try_change(self, pattern: ResourcePattern, transform: Transform) -> bool:
        path = acl_znodes.path(pattern)
        (node,) = await self._store.get_many([path])
        before: Entries | None = frozenset() if node is None else decoded(path, node, acl_znodes.decode_entries)
        if before is None:
            raise StoreError(path, "the existing rules are not understood")
        entries = transform(before)
        if entries != before:
            operations = _operations(path, None if node is None else node.stat.version, entries)
            notification = Create(acl_znodes.change_prefix(pattern), acl_znodes.encode_change(pattern), sequence=True)
            try:
                await self._store.multi([*operations, notification])
            except (BadVersionError, NodeExistsError, NoNodeError):
                return False
            except ConnectionLossError:
                (now,) = await self._store.get_many([path])
                there = frozenset() if now is None else decoded(path, now, acl_znodes.decode_entries)
                if there != entries:
                    return False
        self._publish({pattern: entries})
        return True


def _operations(path: str, version: int | None, entries: Entries) -> list[Operation]:
    """What puts the entries into a node, which has this version or does not exist; without entries it is removed."""
    if not entries:
        return [] if version is None else [Delete(path, version)]
    data = acl_znodes.encode_entries(entries)
    return [Create(path, data) if version is None else Set(path, data, version)]


def _is_stored(pattern: ResourcePattern) -> bool:
    """Whether there can be a node of the pattern."""
    return (
        pattern.resource_type in RESOURCE_TYPES
        and pattern.pattern_type in _KINDS
        and bool(pattern.name)
        and "/" not in pattern.name
    )
