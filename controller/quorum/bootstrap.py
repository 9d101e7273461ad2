"""``bootstrap.checkpoint``: the first records of a cluster, which formatting writes into every log directory (KIP-778).

The first controller that becomes active takes its own copy over into the log, once: the levels of features, ``metadata.version``
first, SCRAM credentials, and whatever else the cluster begins with. The file is a snapshot whose offsets and epoch are 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...log.checkpoints import CorruptFileError
from ...log.disk import Disk, join
from ...log.files import BOOTSTRAP_CHECKPOINT
from ...log.metadata_snapshots import SnapshotHead, SnapshotReader, encode_snapshot
from ...wire.messages.access_records import UserScramCredentialRecord
from ...wire.messages.setting_records import FeatureLevelRecord
from ...wire.metadata_records import VersionedRecord
from .metadata_version import FEATURE, KRAFT_VERSION


def bootstrap_records(
    levels: Mapping[str, int], credentials: Sequence[UserScramCredentialRecord]
) -> Iterator[VersionedRecord]:
    """The records, each with its version. ``kraft.version`` is the voters' business and is none of them."""
    yield FeatureLevelRecord(name=FEATURE, feature_level=levels[FEATURE]), 0
    for name, level in sorted(levels.items()):
        if level and name not in (FEATURE, KRAFT_VERSION):
            yield FeatureLevelRecord(name=name, feature_level=level), 0
    for credential in credentials:
        yield credential, 0


def write_bootstrap(disk: Disk, folder: str, records: Sequence[VersionedRecord], now_ms: int) -> None:
    """Replace the file. Raises OSError."""
    batches = encode_snapshot(SnapshotHead(0), records, epoch=0, now_ms=now_ms)
    disk.write_file(join(folder, BOOTSTRAP_CHECKPOINT), b"".join(batches))


def read_bootstrap(disk: Disk, folder: str) -> list[VersionedRecord]:
    """Raises CorruptFileError, also where no level of ``metadata.version`` is among the records (BootstrapMetadata); OSError."""
    path = join(folder, BOOTSTRAP_CHECKPOINT)
    reader = SnapshotReader(disk.read_file(path), path)
    records = [record for batch in reader.versioned_batches() for record in batch]
    if not any(isinstance(record, FeatureLevelRecord) and record.name == FEATURE for record, _ in records):
        raise CorruptFileError(f"{path}: there is no level of {FEATURE} in it")
    return records
