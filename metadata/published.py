"""The interface of published metadata: the newest image, and the publishers that receive each change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .delta import ClusterDelta
from .image import ClusterImage

Publish = Callable[[ClusterDelta, ClusterImage], None]
"""Takes a change over into a part of the node; the image has it already."""


class PublishedMetadata(Protocol):
    """The newest image, and the publishers of its changes."""

    @property
    def image(self) -> ClusterImage: ...
    @property
    def publishers(self) -> list[Publish]:
        """Each change of the image is handed to them, in their order."""
        ...
