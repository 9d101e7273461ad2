"""Kafka's own message definitions and serializers, from the jars that Maven fetches."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SEED = 20261121
SAMPLES = 15

PACKAGES = {
    "kafka-clients": "org.apache.kafka.common.message",
    "kafka-group-coordinator": "org.apache.kafka.coordinator.group.generated",
    "kafka-transaction-coordinator": "org.apache.kafka.coordinator.transaction.generated",
    "kafka-share-coordinator": "org.apache.kafka.coordinator.share.generated",
    "kafka-metadata": "org.apache.kafka.common.metadata",
}


@dataclass(frozen=True)
class Sample:
    """A message as serialized by Kafka, and as Kafka's JSON."""

    name: str
    version: int
    body: bytes
    value: dict[str, Any]


@dataclass(frozen=True)
class Release:
    """The jars of one release."""

    name: str
    folder: Path

    @functools.cached_property
    def definitions(self) -> dict[str, dict[str, Any]]:
        """Every message definition by name, with ``package`` added."""
        found = {}
        for artifact, package in PACKAGES.items():
            # The coordinators' folder has a kafka-clients jar of another release, whose definitions are not wanted.
            if artifact == "kafka-clients" and not self.name.startswith(artifact):
                continue
            for jar in self.folder.glob(f"{artifact}-[0-9]*.jar"):
                for definition in _definitions(jar):
                    found[definition["name"]] = {**definition, "package": package}
        assert found, f"no message definitions in {self.folder}"
        return found

    def run_samples(self, names: list[str]) -> tuple[list[Sample], list[list[int]]]:
        """Random samples of the messages ``names`` and the header versions of every API, as Kafka makes them."""
        classes = [f"{self.definitions[name]['package']}.{java_class(name)}" for name in names]
        command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-Dfile.encoding=UTF-8"]
        command += ["-cp", f"{self.folder}/*", str(ROOT / "tests/java/MessageSamples.java"), str(SEED), str(SAMPLES)]
        done = subprocess.run(command, input="\n".join(classes).encode(), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        samples, headers = [], []
        for line in done.stdout.decode().splitlines():
            kind, *rest = line.split("\t")
            if kind == "header":
                headers.append([int(number) for number in rest])
            else:
                class_name, version, body, value = rest
                name = class_name.removesuffix("Data")
                samples.append(Sample(name, int(version), bytes.fromhex(body), json.loads(value)))
        return samples, headers


def java_class(name: str) -> str:
    """Kafka's generated class of a message."""
    return f"{name}Data" if name.endswith(("Request", "Response")) else name


def _definitions(jar: Path) -> list[dict[str, Any]]:
    with zipfile.ZipFile(jar) as archive:
        names = [name for name in archive.namelist() if re.fullmatch(r"common/(message|metadata)/\w+\.json", name)]
        texts = [archive.read(name).decode() for name in names]
    return [json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)) for text in texts]


@pytest.fixture(scope="session")
def releases() -> Callable[[str], Release]:
    """``releases("kafka-clients-4.4.0")``: the jars of that folder, fetched if need be."""
    is_ci = os.environ.get("CI") == "true"
    if shutil.which("java") is None and not is_ci:
        pytest.skip("Kafka's serializers need java on the PATH")
    fetch = ["sh", str(ROOT / "tools/fetch_jars.sh"), "wire"]
    done = subprocess.run(fetch, capture_output=True, text=True, check=False)
    if done.returncode != 0 and shutil.which("mvn") is None and not is_ci:
        pytest.skip("Kafka's serializers are fetched with mvn, which is not on the PATH")
    if done.returncode != 0:
        pytest.fail(f"jars could not be fetched: {done.stderr}", pytrace=False)

    @functools.cache
    def find(name: str) -> Release:
        return Release(name, ROOT / ".jars" / name)

    return find
