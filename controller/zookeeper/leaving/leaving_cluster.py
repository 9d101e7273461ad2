"""A cluster that leaves ZooKeeper: its stored metadata, and the fence that is raised before the migration."""

from __future__ import annotations

import random

from ....metadata.image import ClusterImage
from ....wire.schema import ZERO_UUID
from ..nodes import znodes
from ..store.cluster_store import ClusterStore, Set
from ..store.znode_tree import ZnodeTree
from .migration_fence import Fence, check_unchanged, fence_in, lower_fence, raise_fence
from .tree_image import ConvertedImage, MoveRules, UnmovableStateError, cluster_id_of, tree_image
from .tree_reader import CONSUMERS, check_movable, read_tree


class LeavingCluster:
    """``read`` makes one."""

    def __init__(self, store: ClusterStore, tree: ZnodeTree, fence: Fence | None, cluster_id: str) -> None:
        self._store = store
        self._tree = tree
        self.fence = fence
        """What keeps brokers of ZooKeeper mode out; None as long as nothing does."""
        self.cluster_id = cluster_id

    @classmethod
    async def read(cls, store: ClusterStore) -> LeavingCluster:
        """What there is. Raises UnmovableStateError where brokers run, or something cannot go along; StoreError."""
        tree = await read_tree(store)
        check_movable(tree)
        fence = fence_in(tree)
        if fence is not None:
            check_unchanged(tree, fence)
        cluster_id = cluster_id_of(tree) if fence is None else fence.cluster_id
        if cluster_id is None:
            raise UnmovableStateError("there is no cluster in this ZooKeeper: zookeeper.connect may be wrong")
        return cls(store, tree, fence, cluster_id)

    def moved(self, rules: MoveRules, randomness: random.Random) -> ConvertedImage:
        """Its metadata as those of a cluster of KRaft. Raises UnmovableStateError."""
        return tree_image(self._tree, rules, randomness)

    @property
    def topics_without_id(self) -> list[str]:
        """Those made by Kafka before 2.8, which no newer controller has seen."""
        folder = self._tree.nodes.get(znodes.TOPICS)
        return [] if folder is None else [name for name in sorted(folder.children) if self._lacks_id(name)]

    def _lacks_id(self, topic: str) -> bool:
        return znodes.decode_topic(self._tree.nodes[znodes.topic_path(topic)].data).topic_id == ZERO_UUID

    @property
    def old_groups(self) -> list[str]:
        """Groups of consumers before Kafka 0.9, which have their offsets in ZooKeeper."""
        folder = self._tree.nodes.get(CONSUMERS)
        return [] if folder is None else sorted(folder.children)

    @property
    def features(self) -> list[str]:
        """What is finalized, as ``name=level`` each."""
        node = self._tree.nodes.get(znodes.FEATURE)
        levels = {} if node is None or not node.data else znodes.decode_features(node.data)
        return [f"{name}={level}" for name, level in sorted(levels.items())]

    async def complete_topic_ids(self, image: ClusterImage) -> None:
        """Give topics without an id the one that they have in the image. Raises StoreError."""
        for name in self.topics_without_id:
            path = znodes.topic_path(name)
            node = self._tree.nodes[path]
            completed = znodes.decode_topic(node.data)._replace(topic_id=image.topics[name].topic_id)
            await self._store.multi([Set(path, znodes.encode_topic(completed), node.version)])

    async def raise_fence(self, node_id: int) -> None:
        """Say that this node has the metadata from now on. Raises UnmovableStateError, StoreError."""
        self.fence = await raise_fence(self._store, self._tree, node_id, self.cluster_id)
        # Looked at behind the fence: a broker may have started between the reading of the tree and the raising.
        if running := await self._store.children(znodes.BROKER_IDS):
            await lower_fence(self._store, self.fence)
            raise UnmovableStateError(
                f"brokers have started meanwhile ({', '.join(running)}): stop them, and begin again"
            )
