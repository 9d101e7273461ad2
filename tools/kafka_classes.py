"""Archives the classes that Kafka's command-line tools load, for ``compat_tests/java/tools.py``; run by tools/setup.sh.

Each call of a tool lists the classes that it has loaded; what is on any of the lists goes into the archive.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import ottla
from ottla.compat_tests import toolchains
from ottla.compat_tests.java.tools import MAIN_CLASSES, SHORT_LIVED, archive, class_path

CALLS = (
    ("topics", "--create", "--topic", "classes"),
    ("consumer-groups", "--list"),
    ("console-consumer", "--topic", "classes", "--group", "classes", "--timeout-ms", "1"),
    ("console-producer", "--topic", "classes"),
    ("configs", "--describe", "--entity-type", "topics"),
)


def main() -> None:
    """Make the calls and leave the archive."""
    java, fresh = str(toolchains.java()), archive().with_suffix(".fresh")
    classes: dict[str, None] = {}
    with tempfile.TemporaryDirectory() as folder, ottla.Broker(data_dir=Path(folder, "data")) as broker:
        listed = Path(folder, "listed")
        server = ("--bootstrap-server", broker.bootstrap_servers)
        files = ("--print-data-log", "--files", str(Path(folder, "data", "classes-0", f"{0:020}.log")))
        for tool, *words in [*((tool, *server, *words) for tool, *words in CALLS), ("dump-log", *files)]:
            command = [java, *SHORT_LIVED, f"-XX:DumpLoadedClassList={listed}", "-cp", class_path(), MAIN_CLASSES[tool]]
            subprocess.run([*command, *words], input=b"value\n", check=True)
            classes |= dict.fromkeys(listed.read_text().splitlines())
        listed.write_text("".join(f"{line}\n" for line in classes))
        dump = ["-Xshare:dump", f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={fresh}", "-Xlog:disable"]
        subprocess.run([java, *dump, "-cp", class_path()], check=True)
    fresh.replace(archive())


if __name__ == "__main__":
    main()
