"""What a broker writes is for its own user: folders 0700, files 0600, whatever the umask allows."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from kafka import KafkaProducer

import ottla


def test_only_its_own_user_reads_a_data_folder(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    before = os.umask(0)
    try:
        with (
            ottla.Broker(data_dir=data_dir) as broker,
            KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer,
        ):
            producer.send("secrets", b"a record").get(timeout=20)
    finally:
        os.umask(before)
    paths = [data_dir, *data_dir.rglob("*")]
    modes = {path.relative_to(tmp_path): stat.S_IMODE(path.stat().st_mode) for path in paths}
    open_to_others = {str(path): oct(mode) for path, mode in modes.items() if mode & 0o077}
    assert not open_to_others
    assert any(path.suffix == ".log" for path in paths) and any(path.name == "meta.properties" for path in paths)
