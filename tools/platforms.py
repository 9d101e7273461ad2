"""``make platforms``: on which systems pip installs each part of Ottla without a compiler, as a table in docs/index.md.

    python tools/platforms.py FILE

replaces what FILE has between ``<!-- platforms -->`` and ``<!-- /platforms -->``. A system is without a compiler when, for every
dependency, the release that pip takes there (the newest that the requirement and the Python allow) has a wheel for it. An older
release with a wheel does not help: pip builds the newest one. The dependencies are those of this environment, which has every
extra; their files are looked up in the package index, one page for each.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from packaging import tags
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from pypi_simple import DistributionPackage, PyPISimple

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("", "metrics", "console", "console-formats", "spark", "compat")
"""Extras; the first row is what every installation has."""
_PURE_SDISTS = frozenset({"pyspark", "pure-sasl"})
"""Have no wheels, and nothing to compile."""
_MANYLINUX = ("2_28", "2_27", "2_26", "2_24", "2_17", "2_12", "2_5")  # Debian 10, RHEL 8 and newer
_LEGACY = {"2_17": "2014", "2_12": "2010", "2_5": "1"}
_MARKS = ("<!-- platforms -->\n", "<!-- /platforms -->")


class System(NamedTuple):
    """A column of the table; ``platforms`` are tags of wheels, the best first."""

    title: str
    os_name: str
    machine: str
    platforms: tuple[str, ...]


def _glibc(machine: str) -> tuple[str, ...]:
    names = [f"manylinux_{version}_{machine}" for version in _MANYLINUX]
    return (*names, *(f"manylinux{name}_{machine}" for name in _LEGACY.values()), f"linux_{machine}")


def _musl(machine: str) -> tuple[str, ...]:
    return (f"musllinux_1_2_{machine}", f"musllinux_1_1_{machine}")


SYSTEMS = (
    *(System(f"Linux {machine}", "Linux", machine, _glibc(machine)) for machine in ("x86_64", "aarch64")),
    *(System(f"Alpine {machine}", "Linux", machine, _musl(machine)) for machine in ("x86_64", "aarch64")),
    *(
        System(f"macOS {machine}", "Darwin", machine, tuple(tags.mac_platforms((14, 0), machine)))
        for machine in ("arm64", "x86_64")
    ),
)


@dataclass
class Index:
    """The files of each project, asked for once."""

    client: PyPISimple
    files: dict[str, list[DistributionPackage]] = field(default_factory=dict)

    def newest(self, name: str, allowed: SpecifierSet, python: str) -> list[DistributionPackage]:
        """The files of the release that pip takes."""
        if name not in self.files:
            self.files[name] = self.client.get_project_page(name).packages
        releases: dict[Version, list[DistributionPackage]] = {}
        for file in self.files[name]:
            version = _version(file)
            if _runs_on(python, file) and not file.is_yanked and allowed.contains(version, prereleases=False):
                releases.setdefault(version, []).append(file)
        return releases[max(releases)] if releases else []


def _version(file: DistributionPackage) -> Version:
    try:
        return Version(file.version or "")
    except InvalidVersion:  # of a time before there were rules
        return Version("0.dev0")


def _runs_on(python: str, file: DistributionPackage) -> bool:
    try:
        return f"{python}.99" in SpecifierSet(file.requires_python or "")
    except InvalidSpecifier:  # pip takes it
        return True


def needs_no_compiler(files: list[DistributionPackage], system: System, python: str) -> bool:
    """Whether one of the wheels of a release is for this system."""
    version = tuple(map(int, python.split(".")))
    names = [*tags.cpython_tags(version, platforms=system.platforms)]
    wanted = {*names, *tags.compatible_tags(version, f"cp{version[0]}{version[1]}", system.platforms)}
    wheels = [file.filename for file in files if file.filename.endswith(".whl")]
    return any(wanted & parse_wheel_filename(wheel)[3] for wheel in wheels)


def requirements(name: str, extras: set[str], environment: Mapping[str, str], seen: set[str]) -> Iterator[Requirement]:
    """What ``name`` needs in an environment, and what that needs; the metadata are those installed here."""
    try:
        lines = importlib.metadata.requires(name) or []
    except importlib.metadata.PackageNotFoundError:  # of another system
        return
    for wanted in map(Requirement, lines):
        contexts = [{**environment, "extra": extra} for extra in extras or {""}]
        if wanted.marker is not None and not any(wanted.marker.evaluate(context) for context in contexts):
            continue
        called = canonicalize_name(wanted.name)
        key = f"{called}[{','.join(sorted(wanted.extras))}]"
        if key not in seen:
            seen.add(key)
            yield wanted
            yield from requirements(called, wanted.extras, environment, seen)


def blockers(index: Index, part: str, system: System, python: str) -> set[str]:
    """The dependencies of a part that are compiled on a system."""
    environment = {
        **default_environment(),
        "platform_system": system.os_name,
        "sys_platform": system.os_name.lower(),
        "platform_machine": system.machine,
        "python_version": python,
        "python_full_version": f"{python}.9",
    }
    found = set()
    for wanted in requirements("ottla", {part} if part else set(), environment, set()):
        name = canonicalize_name(wanted.name)
        if name not in {"ottla", *_PURE_SDISTS}:
            files = index.newest(name, wanted.specifier, python)
            if not needs_no_compiler(files, system, python):
                found.add(name)
    return found


def pythons() -> list[str]:
    """The versions in the classifiers, as in ``3.11``."""
    lines = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    return re.findall(r"Programming Language :: Python :: (3\.\d+)", "\n".join(lines))


def cell(compiled: Mapping[str, list[str]], versions: list[str]) -> str:
    """``yes``, or what is compiled and, where it is not always, with which Pythons."""
    words = [name if on == versions else f"{name} ({', '.join(on)})" for name, on in sorted(compiled.items())]
    return ", ".join(words) or "yes"


def table(index: Index, versions: list[str]) -> str:
    """A row for each part; that of an extra has what it needs beside Ottla itself."""
    lines = [f"| | {' | '.join(system.title for system in SYSTEMS)} |", "|---" * (len(SYSTEMS) + 1) + "|"]
    own = {(system, python): blockers(index, "", system, python) for system in SYSTEMS for python in versions}
    for part in PARTS:
        cells = []
        for system in SYSTEMS:
            compiled: dict[str, list[str]] = {}
            for python in versions:
                found = blockers(index, part, system, python) - own[system, python] if part else own[system, python]
                for name in found:
                    compiled.setdefault(name, []).append(python)
            cells.append(cell(compiled, versions))
        lines.append(f"| {f'`{part}`' if part else 'Ottla itself'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """The exit status."""
    page = Path(sys.argv[1])
    before, mark, rest = page.read_text().partition(_MARKS[0])
    assert mark, f"{page} has no {_MARKS[0]}"
    _, end, after = rest.partition(_MARKS[1])
    versions = pythons()
    with PyPISimple() as client:
        rows = table(Index(client), versions)
    day = datetime.date.today().isoformat()
    about = f"Python {versions[0]} to {versions[-1]}, as the package index was on {day}:"
    page.write_text(f"{before}{mark}{about}\n\n{rows}\n{end}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
