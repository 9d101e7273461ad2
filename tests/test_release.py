"""`make release`: what it asks of CHANGELOG.md and of the checkout, and, slow, what it makes."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import ottla
from ottla.tools import release

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv-release" / "bin" / "python"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_changelog_has_this_version() -> None:
    release.check_changelog((ROOT / "CHANGELOG.md").read_text(), ottla.__version__)


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ("## [Unreleased]\n", "it has none"),
        ("## [Unreleased]\n\n## [1.1.0] - 2026-01-01\n", "its newest is 1.1.0"),
        ("## [1.1.0] - 2026-01-01\n\n## [1.2.0] - 2026-02-01\n", "its newest is 1.1.0"),
        ("## [1.2.0]\n", "its newest is 1.2.0"),
    ],
    ids=["none", "forgotten", "in the wrong place", "without a day"],
)
def test_a_version_without_its_section_is_not_released(sections: str, said: str) -> None:
    with pytest.raises(release.NotReleased, match=r"'## \[1.2.0\] - YYYY-MM-DD'") as refused:
        release.check_changelog(sections, "1.2.0")
    assert str(refused.value).endswith(said)


def test_a_checkout_with_changes_is_not_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "ROOT", tmp_path)
    release.check_committed()  # no checkout
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    release.check_committed()
    (tmp_path / "forgotten.py").touch()
    with pytest.raises(release.NotReleased, match="uncommitted"):
        release.check_committed()


def test_every_extra_is_installed() -> None:
    """Those that are not named are brought by one that is."""
    extras = PROJECT["optional-dependencies"]
    brought = {name for wanted in extras.values() for name in extras if f"ottla[{name}]" in wanted}
    assert brought | set(release.EXTRAS.split(",")) == set(extras)


@pytest.mark.slow
def test_a_release(tmp_path: Path) -> None:
    """All of it, in a copy of the checkout."""
    if not PYTHON.exists():
        pytest.skip("no .venv-release (tools/setup.sh release)")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for path in listed.stdout.splitlines():
        if (ROOT / path).exists():
            (tmp_path / "checkout" / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, tmp_path / "checkout" / path)
    out = tmp_path / "out"
    out.mkdir()
    (out / "ottla-0.0.9.tar.gz").touch()
    command = [PYTHON, "tools/release.py", "--out", out]
    done = subprocess.run(command, cwd=tmp_path / "checkout", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    version = ottla.__version__
    wheel, sdist, sbom = f"ottla-{version}-py3-none-any.whl", f"ottla-{version}.tar.gz", f"ottla-{version}.cdx.json"
    assert {file.name for file in out.iterdir()} == {wheel, sdist, sbom, "SHA256SUMS"}
    for line in (out / "SHA256SUMS").read_text().splitlines():
        expected, name = line.split("  ")
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == expected
    with zipfile.ZipFile(out / wheel) as archive:
        assert f"Version: {version}\n" in archive.read(f"ottla-{version}.dist-info/METADATA").decode()
    with tarfile.open(out / sdist) as archive:
        names = archive.getnames()
    for tests in release.QUICK_TESTS:
        assert f"ottla-{version}/{tests}" in names
    described = json.loads((out / sbom).read_text())
    assert (described["bomFormat"], described["specVersion"]) == ("CycloneDX", "1.6")
    assert described["metadata"]["component"]["version"] == version
    components = {component["name"].lower(): component for component in described["components"]}
    assert {"trio", "pyspark", "starlette", "fastavro", "pytest"} <= components.keys()
    assert components["trio"]["licenses"]
    root = next(each for each in described["dependencies"] if each["ref"] == "root-component")
    assert any(name.startswith("trio==") for name in root["dependsOn"])
    assert str(tmp_path) not in (out / sbom).read_text()
