"""The checks of a ``server.properties`` without its broker: names, values, log directories, key stores."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from ....base.config import Config
from ....base.kafka_property_names import KAFKA_PROPERTY_NAMES
from ....base.listener_names import without_prefix
from ....base.settings import SettingError
from ....base.wording import counted, meant, plural
from ....broker.config_file import declared_names, load_config, read_properties
from ....broker.formation.node_list import NODES, cluster_properties
from ....broker.listener_config import ListenerConfig
from ....broker.listeners.addresses import configured_listeners
from ....broker.settings import BrokerSettings
from ....security.tls_material import read_material
from ....security.tls_settings import TlsSettings
from ....view import checks
from ....view.disk_space import DiskRow
from . import certificates
from .deprecated_settings import DEPRECATED
from .diagnosis import Area, Diagnosis, named, note, of_finding, ok, problem, warning

_NODE_ID = ("node.id", "broker.id")
_SPACE = "docs/troubleshooting.md#retention-is-set-and-the-disk-stays-full"


def examine(file: Path) -> list[Diagnosis]:
    """All that is seen from the file and the disk."""
    try:
        properties = read_properties(file)
    except OSError as error:
        return [problem(Area.SETTINGS, f"{file} cannot be read: {error.strerror}", f"ls -l {file}")]
    except SettingError as error:
        return [problem(Area.SETTINGS, str(error), "docs/configuration.md")]
    found = [*_names(file, properties)]
    try:
        config = load_config(cluster_properties(properties, None, None) if NODES in properties else properties)
        settings = config.settings(BrokerSettings)
        listeners, _ = configured_listeners(settings)
    except (SettingError, ValueError, OSError) as error:
        return [
            *found,
            problem(Area.SETTINGS, f"A broker does not start with {file}: {_sentence(error)}", "docs/configuration.md"),
        ]
    if not found:
        found.append(
            ok(
                Area.SETTINGS,
                f"{counted(len(properties), 'property', 'properties')} of {file} are known and well-formed",
            )
        )
    found += _directories(properties, settings.log_dirs or (settings.log_dir,))
    for listener in listeners:
        if listener.security_protocol.endswith("SSL"):
            found += _key_store(config, listener.name, listener.security_protocol)
    return found


def _names(file: Path, properties: Mapping[str, str]) -> Iterator[Diagnosis]:
    declared = declared_names()
    unused = []
    for name in sorted(properties):
        plain = without_prefix(name)
        if plain in declared:
            pass
        elif plain in KAFKA_PROPERTY_NAMES:
            unused.append(name)
        else:
            what = (
                f"{name} in {file} is not a property of Kafka or Ottla{meant(plain, declared | KAFKA_PROPERTY_NAMES)}"
            )
            yield warning(Area.SETTINGS, what, "docs/configuration.md")
        if plain in DEPRECATED:
            yield note(Area.SETTINGS, f"{name} in {file} is deprecated: {DEPRECATED[plain]}", "docs/configuration.md")
    if unused:
        what = (
            f"{counted(len(unused), 'property', 'properties')} of Kafka in {file} {plural(len(unused), 'has', 'have')}"
        )
        yield note(Area.SETTINGS, f"{what} no effect on Ottla: {named(unused)}")


def _directories(properties: Mapping[str, str], folders: tuple[str, ...]) -> Iterator[Diagnosis]:
    """Log directories that a broker could not use, and their free space."""
    node = next((int(properties[name]) for name in _NODE_ID if properties.get(name, "").isdigit()), 1)
    rows = []
    for folder in folders:
        there = Path(folder)
        if not there.exists():
            yield note(Area.DISKS, f"The log directory {folder} does not exist; a broker makes it when it starts")
            continue
        if not there.is_dir():
            yield problem(Area.DISKS, f"The log directory {folder} is not a directory", f"ls -l {folder}")
            continue
        volume = os.statvfs(there)
        if volume.f_flag & os.ST_RDONLY:
            yield problem(
                Area.DISKS, f"The log directory {folder} is on a volume that is read-only", f"findmnt -T {folder}"
            )
        elif not os.access(there, os.R_OK | os.W_OK | os.X_OK):
            yield problem(Area.DISKS, f"The log directory {folder} is not writable for this user", f"ls -ld {folder}")
        size = volume.f_frsize
        rows.append(DiskRow(node, folder, volume.f_blocks * size, volume.f_bavail * size))
    if rows:
        check, findings = checks.disks(rows, "")
        yield from (of_finding(Area.DISKS, each, _SPACE) for each in findings)
        if not findings:
            least = min(row.free or 0.0 for row in rows)
            yield ok(Area.DISKS, f"{check.what} on this machine: at least {least:.0%} free")


def _key_store(config: Config, listener: str, protocol: str) -> Iterator[Diagnosis]:
    try:
        settings = ListenerConfig(config, listener, protocol).settings(TlsSettings)
        material = read_material(settings, lambda path: Path(path).read_bytes())
    except SettingError as error:
        yield problem(
            Area.CERTIFICATES,
            f"The listener {listener} cannot use its key store: {_sentence(error)}",
            "docs/security.md",
        )
        return
    if material.key is None:
        yield problem(Area.CERTIFICATES, f"The listener {listener} has no ssl.keystore.location", "docs/security.md")
    else:
        yield certificates.line(f"the listener {listener}", material.key.chain[0])


def _sentence(error: Exception) -> str:
    return str(error).removesuffix(".")
