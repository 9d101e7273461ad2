"""Files wherever Spark writes them, through Hadoop's file systems. Paths are local or any URI that Spark supports."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.system_calls import sync_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class File:
    """A file that Spark can reach."""

    uri: str
    """Encoded as in Spark's own lists."""
    path: str
    """The part of the URI after the host, decoded."""
    size: int
    modified_ms: int
    replication: int
    block_size: int


class Files:
    """The file systems that one session can reach."""

    def __init__(self, spark: SparkSession) -> None:
        assert spark._jvm is not None, "not a session with its own JVM"
        self._jvm: Any = spark._jvm
        self._gateway: Any = spark.sparkContext._gateway
        self._configuration = spark._jsparkSession.sessionState().newHadoopConf()

    def _open(self, path: str) -> tuple[Any, Any]:
        """The file system, and the full path."""
        given = self._jvm.org.apache.hadoop.fs.Path(path)
        system = given.getFileSystem(self._configuration)
        return system, system.makeQualified(given)

    def absolute(self, path: str) -> str:
        """The absolute path with its scheme."""
        return str(self._open(path)[1].toString())

    def local(self, path: str) -> str | None:
        """The path on this machine's disks, or None when it is elsewhere."""
        uri = self._open(path)[1].toUri()
        return str(uri.getPath()) if uri.getScheme() == "file" else None

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        system, where = self._open(path)
        return bool(system.exists(where))

    def is_file(self, path: str) -> bool:
        """Whether it is an existing file, and neither a folder nor a pattern."""
        system, where = self._open(path)
        return bool(system.isFile(where))

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none if it does not exist."""
        system, where = self._open(folder)
        return [str(status.getPath().getName()) for status in system.listStatus(where)] if system.exists(where) else []

    def below(self, folder: str) -> Iterator[File]:
        """All files in a folder and in those below it."""
        system, where = self._open(folder)
        found = system.listFiles(where, True)
        while found.hasNext():
            yield _file(found.next())

    def move(self, source: str, folder: str) -> File:
        """Move a file into a folder of the same file system; atomic, if the file system supports it."""
        system, where = self._open(source)
        target = self._jvm.org.apache.hadoop.fs.Path(self._open(folder)[1], where.getName())
        if not system.rename(where, target):
            raise OSError(f"{source} cannot be moved to {folder}")
        return _file(system.getFileStatus(target))

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with its contents; it need not exist."""
        system, where = self._open(path)
        system.delete(where, True)

    def read(self, path: str) -> str:
        """The content of a text file."""
        system, where = self._open(path)
        stream = system.open(where)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def replace(self, path: str, text: str) -> None:
        """Replace the text of a file: readers see the old text or the new one, even if this is killed."""
        local = self.local(path)
        if local is not None:
            self._replace_locally(local, text)
        else:
            self._replace(path, text)

    def _replace_locally(self, path: str, text: str) -> None:
        """Without Hadoop, which would delete the old file before it renames the new one, and expect the old checksum."""
        folder, name = os.path.split(path)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=folder, prefix=".", suffix=".tmp", delete=False
        ) as new:
            new.write(text)
            new.flush()
            sync_all(new.fileno())
        os.chmod(new.name, os.stat(path).st_mode & 0o777)
        self.delete(f"{folder}/.{name}.crc")
        os.replace(new.name, path)

    def _replace(self, path: str, text: str) -> None:
        folder, _, name = path.rpartition("/")
        # Spark ignores files in its lists whose names begin with a dot.
        system, temporary = self._open(f"{folder}/.{name}.{uuid.uuid4()}.tmp")
        written = system.create(temporary, True)
        written.write(bytearray(text.encode()))
        written.close()
        rename = self._jvm.org.apache.hadoop.fs.Options.Rename
        overwrite = self._gateway.new_array(rename, 1)
        overwrite[0] = rename.OVERWRITE
        context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(temporary.toUri(), self._configuration)
        context.rename(temporary, self._open(path)[1], overwrite)


def _file(status: Any) -> File:
    uri = status.getPath().toUri()
    return File(
        str(uri.toString()),
        str(uri.getPath()),
        int(status.getLen()),
        int(status.getModificationTime()),
        int(status.getReplication()),
        int(status.getBlockSize()),
    )
