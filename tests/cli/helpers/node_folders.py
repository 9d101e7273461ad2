"""The log directories and the properties of a node that ``ottla format`` is to format."""

from __future__ import annotations

from pathlib import Path

from ottla.cli.format_directories import FormatOptions, run
from ottla.controller.quorum.bootstrap import read_bootstrap
from ottla.log.checkpoints import MetaProperties, read_meta_properties
from ottla.log.disk import OsDisk
from ottla.wire.messages.setting_records import FeatureLevelRecord

CLUSTER = "3Db5QLSqSZieL3rJBUUegA"


class Node:
    """The folders and the properties of a node."""

    def __init__(self, path: Path, **properties: str) -> None:
        self.path = path
        self.folders = [path / "a", path / "b"]
        given = {
            "process.roles": "broker,controller",
            "node.id": "3",
            "log.dirs": ",".join(map(str, self.folders)),
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://:9093",
            "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
        lines = [f"{name}={value}\n" for name, value in given.items() if value]
        (path / "server.properties").write_text("".join(lines))

    def format(self, **options: object) -> int:
        given = {
            "cluster_id": CLUSTER,
            "is_standalone": False,
            "initial_controllers": None,
            "has_no_initial_controllers": False,
            "release": None,
            "features": [],
            "credentials": [],
            "ignores_formatted": False,
            **options,
        }
        return run(self.path / "server.properties", FormatOptions(**given))  # type: ignore[arg-type]

    def meta(self, slot: int) -> MetaProperties:
        found = read_meta_properties(OsDisk(), str(self.folders[slot]))
        assert found is not None
        return found

    def levels(self, slot: int) -> dict[str, int]:
        records = [record for record, _ in read_bootstrap(OsDisk(), str(self.folders[slot]))]
        return {r.name: r.feature_level for r in records if isinstance(r, FeatureLevelRecord)}

    @property
    def voters_file(self) -> Path:
        return self.folders[0] / "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
