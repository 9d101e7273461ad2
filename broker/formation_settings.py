"""Settings of a node that forms or joins a cluster by itself."""

from __future__ import annotations

from ..base.settings import Settings, setting

SECRET = "cluster.secret.file"
SECRET_USER = "ottla-cluster"
"""The name by which a node authenticates with the cluster's secret."""


class FormationSettings(Settings):
    """The nodes that form a cluster, and its secret."""

    nodes: tuple[str, ...] = setting(
        "cluster.nodes",
        default=(),
        doc="The first nodes of a cluster in order, HOST or HOST:PORT separated by commas, as clients reach "
        "them. node.id is this node's position, counted from 1. Controllers use the next port. The nodes "
        "form a cluster when all of them run; later nodes join it (`ottla serve --cluster`).",
    )
    secret_file: str | None = setting(
        "cluster.secret.file",
        default=None,
        doc="File with the secret of the cluster's nodes: 16 characters or more, the same on each. The "
        "controllers' listener then requires it (SCRAM-SHA-512), and brokers prove it to each other before a console "
        "shows another broker's connections and requests.",
    )
