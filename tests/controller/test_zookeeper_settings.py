"""What ``zookeeper.connect`` may say, and that a broker without it has nothing of ZooKeeper's to load."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ottla.base.settings import SettingError
from ottla.controller.zookeeper.store.zookeeper_settings import (
    ZooKeeperAddress,
    ZooKeeperSettings,
    parse_zookeeper_address,
)


@pytest.mark.parametrize(
    ("text", "servers", "chroot"),
    [
        ("zk", [("zk", 2181)], ""),
        ("zk:2182/", [("zk", 2182)], ""),
        ("a:1, b:2,c/kafka", [("a", 1), ("b", 2), ("c", 2181)], "/kafka"),
        ("[::1]:2181,[::2]/deep/er", [("::1", 2181), ("::2", 2181)], "/deep/er"),
    ],
)
def test_an_address(text: str, servers: list[tuple[str, int]], chroot: str) -> None:
    assert parse_zookeeper_address(text) == ZooKeeperAddress(tuple(servers), chroot)


def test_an_address_is_written_as_it_is_read() -> None:
    for text in ("a:1,[::1]:2/kafka", "zk:2181"):
        assert str(parse_zookeeper_address(text)) == text


@pytest.mark.parametrize(
    "text", ["", "/kafka", ":2181", "zk:port", "zk:99999", "zk/kafka/", "zk//kafka", "zk/../kafka"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(SettingError, match=r"Invalid value .* for configuration zookeeper\.connect"):
        ZooKeeperSettings.from_properties({"zookeeper.connect": text})


def test_a_broker_alone_loads_nothing_of_it() -> None:
    code = """
import sys
import ottla.broker.server, ottla.cli.serve, ottla.controller.zookeeper.store.cluster_home
import ottla.controller.zookeeper.store.zookeeper
assert "kazoo" not in sys.modules, sorted(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
