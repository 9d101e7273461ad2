"""The table of docs/index.md that says where pip needs no compiler: what counts as a wheel for a system, and what it is of."""

from __future__ import annotations

import re
import tomllib

import pytest

pytest.importorskip("pypi_simple")

from packaging.specifiers import SpecifierSet
from pypi_simple import DistributionPackage, Link, PyPISimple

from ottla.tools import platforms
from ottla.tools.platforms import ROOT, SYSTEMS, Index

NAMED = {system.title: system for system in SYSTEMS}
PAGE = (ROOT / "docs" / "index.md").read_text()


def files(*names: str, requires: str | None = None) -> list[DistributionPackage]:
    links = [Link(text=name, url=f"https://index.example/{name}", attrs={}) for name in names]
    found = [DistributionPackage.from_link(link, "lib") for link in links]
    for file in found:
        file.requires_python = requires
    return found


@pytest.mark.parametrize(
    ("wheel", "python", "systems"),
    [
        ("lib-1-py3-none-any.whl", "3.14", set(NAMED)),
        ("lib-1-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "3.12", {"Linux x86_64"}),
        ("lib-1-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "3.13", set()),
        ("lib-1-cp39-abi3-musllinux_1_2_aarch64.whl", "3.14", {"Alpine aarch64"}),
        ("lib-1-cp311-cp311-macosx_10_9_universal2.whl", "3.11", {"macOS arm64", "macOS x86_64"}),
        ("lib-1-cp311-cp311-macosx_11_0_arm64.whl", "3.11", {"macOS arm64"}),
        ("lib-1-cp311-cp311-win_amd64.whl", "3.11", set()),
        ("lib-1.tar.gz", "3.11", set()),
    ],
)
def test_the_systems_that_a_file_is_for(wheel: str, python: str, systems: set[str]) -> None:
    found = {name for name, system in NAMED.items() if platforms.needs_no_compiler(files(wheel), system, python)}
    assert found == systems


def test_the_release_that_pip_takes() -> None:
    releases = {
        "lib": [
            *files("lib-1-py3-none-any.whl", "lib-2.tar.gz"),
            *files("lib-3.tar.gz", requires=">=3.12"),
            *files("lib-4a1.tar.gz"),
            *files("lib-0.1.tar.gz", requires=">= '2.7'"),
        ]
    }
    with PyPISimple() as client:
        index = Index(client, releases)
        for python, allowed, expected in (
            ("3.11", "", "2"),
            ("3.12", "", "3"),
            ("3.12", "<2", "1"),
            ("3.11", "<1", "0.1"),
        ):
            assert {file.version for file in index.newest("lib", SpecifierSet(allowed), python)} == {expected}
        assert index.newest("lib", SpecifierSet(">4"), "3.12") == []


def test_what_a_cell_says() -> None:
    assert platforms.cell({}, ["3.11", "3.12"]) == "yes"
    assert platforms.cell({"lz4": ["3.11", "3.12"], "a": ["3.12"]}, ["3.11", "3.12"]) == "a (3.12), lz4"


def test_the_table_has_every_part_system_and_python() -> None:
    table = PAGE.partition("<!-- platforms -->")[2].partition("<!-- /platforms -->")[0]
    versions = platforms.pythons()
    assert f"Python {versions[0]} to {versions[-1]}," in table
    assert re.findall(r"^\| \| (.*) \|$", table, re.MULTILINE) == [" | ".join(NAMED)]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    rows = re.findall(r"^\| `?([\w -]+?)`? \| ", table, re.MULTILINE)
    assert rows == ["Ottla itself", *platforms.PARTS[1:]]
    assert set(extras) - set(platforms.PARTS) == {"jobs"}  # spark without its pyspark
