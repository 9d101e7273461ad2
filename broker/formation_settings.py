"""Settings of a node that forms or joins a cluster by itself."""

from __future__ import annotations

from ..base.settings import Settings, setting

SECRET = "cluster.secret.file"
SECRET_USER = "ottla-cluster"
"""The name by which a node authenticates with the cluster's secret."""


class FormationSettings(Settings):
    """The nodes that form a cluster, and the secret that lets a node in."""

    nodes: tuple[str, ...] = setting(
        "cluster.nodes",
        default=(),
        doc="The first nodes of a cluster in their order, HOST or HOST:PORT with commas between, where clients reach them; "
        "node.id is this node's place, counted from 1. Their controllers are at the next port. They form a cluster once all of "
        "them are there, and a node that starts later joins it (`ottla serve --cluster`).",
    )
    secret_file: str | None = setting(
        "cluster.secret.file",
        default=None,
        doc="A file with the secret by which the nodes of a cluster know one another, of 16 characters or more, the same on "
        "each. The controllers' listener then asks for it, by SCRAM-SHA-512.",
    )
