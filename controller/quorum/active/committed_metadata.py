"""The committed metadata of a controller, published to the other parts of its node.

These are access rules, quotas, users and settings.

Nothing is published before the node has caught up with what was committed when it began: the rules of an old image may allow what
newer ones deny (KAFKA-13649, KAFKA-15389). The first publication is then of everything, and each later one of what has changed.
"""

from __future__ import annotations

from ....metadata.delta import ClusterDelta
from ....metadata.difference import delta_between
from ....metadata.image import ClusterImage
from ....metadata.published import Publish


class CommittedMetadata:
    """See the module, and ``PublishedMetadata``."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.publishers: list[Publish] = []
        self.is_loaded = False
        """Whether the node has caught up once."""

    def load(self, image: ClusterImage) -> None:
        """The node has caught up, or has replaced all that it had by a snapshot."""
        self.is_loaded = True
        self.publish(delta_between(self.image, image), image)

    def publish(self, delta: ClusterDelta, image: ClusterImage) -> None:
        """A batch is committed that has changed ``delta``."""
        if not self.is_loaded:
            return
        self.image = image
        for publish in self.publishers:
            publish(delta, image)
