"""`make release`: wheel, sdist, SBOM and checksums of the version in ``__init__.py``, each of them checked, in ``dist/``.

    .venv-release/bin/python tools/release.py [--out FOLDER] [--python PYTHON]

In this order, and the first failure ends it:

1. everything is committed, and CHANGELOG.md has a section for the version;
2. ``build`` makes the sdist, and the wheel from the sdist; ``twine check --strict`` and ``check-wheel-contents`` take them;
3. the wheel, installed with every extra into an empty virtualenv, carries a record through a broker;
4. ``cyclonedx-py`` lists what that virtualenv has;
5. the sdist, unpacked and installed over the wheel, passes QUICK_TESTS.

The folder gets nothing before all has passed, and keeps nothing of an earlier run. Nothing is uploaded.

The SBOM (``ottla-VERSION.cdx.json``, CycloneDX 1.6) is a file of the release, because it tells of a day: what the wheel with all
its extras brought on this system, with versions, licences and dependencies. ``SHA256SUMS`` is for ``sha256sum --check``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_WIRE = ("test_codec.py", "test_compression.py", "test_records.py")  # the others compare with Kafka's jars
QUICK_TESTS = ("tests/base", "tests/metadata", *(f"tests/wire/{name}" for name in _WIRE))
"""What the sdist has of the tests; MANIFEST.in names the same."""
EXTRAS = "compat,console-formats,metrics,spark"
"""Each of the others is in one of these."""
_BIN = Path(sys.executable).parent
_RECORD = """
import ottla
from kafka import KafkaConsumer, KafkaProducer

with ottla.Broker() as broker:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("release", b"a record").get(timeout=30)
    consumer = KafkaConsumer("release", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
    assert next(consumer).value == b"a record"
    consumer.close()
"""


class NotReleased(Exception):
    """A check failed; ``str()`` says which."""


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description="Build and check what a release consists of.")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="emptied and filled (default: dist)")
    parser.add_argument(
        "--python", default=sys.executable, help="installs what was built (default: the one that runs this)"
    )
    wanted = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="ottla-release-") as folder:
            made = release(Path(folder), wanted.python)
            if wanted.out.exists():
                shutil.rmtree(wanted.out)
            shutil.copytree(made, wanted.out)
    except NotReleased as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    for file in sorted(wanted.out.iterdir()):
        print(f"{file.stat().st_size:>10,}  {file.name}")
    return 0


def release(work: Path, python: str) -> Path:
    """Do it all in a folder of its own; the folder with what has passed. Raises NotReleased."""
    check_committed()
    made = work / "dist"
    say("building the sdist, and the wheel from it")
    run(_BIN / "python", "-m", "build", "--outdir", made, ROOT)
    (sdist,), (wheel,) = made.glob("*.tar.gz"), made.glob("*.whl")
    version = wheel.name.split("-")[1]
    check_changelog((ROOT / "CHANGELOG.md").read_text(), version)
    say("checking both")
    run(_BIN / "twine", "check", "--strict", sdist, wheel)
    run(_BIN / "check-wheel-contents", "--toplevel", "ottla", wheel)
    inside = check_wheel(wheel, work / "wheel", python, made / f"ottla-{version}.cdx.json")
    check_sdist(sdist, work / "sdist", inside)
    files = sorted(made.iterdir())
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (made / "SHA256SUMS").write_text("".join(sums))
    return made


def check_committed() -> None:
    """A release can be built again from its commit; an unpacked sdist has no commits."""
    if (ROOT / ".git").exists() and run("git", "status", "--porcelain", cwd=ROOT).strip():
        raise NotReleased("there are uncommitted changes; a release is what a commit holds")


def check_changelog(text: str, version: str) -> None:
    """A section for the version, with its day, above those of earlier versions. Raises NotReleased."""
    sections = re.findall(r"^## \[([^\]]+)\](?: - (\d{4}-\d{2}-\d{2}))?$", text, re.MULTILINE)
    versions = [section for section in sections if section[0] != "Unreleased"]
    if not versions or versions[0][0] != version or not versions[0][1]:
        found = f"its newest is {versions[0][0]}" if versions else "it has none"
        raise NotReleased(f"CHANGELOG.md lacks the section '## [{version}] - YYYY-MM-DD' of this version: {found}")


def check_wheel(wheel: Path, folder: Path, python: str, sbom: Path) -> Path:
    """Install it with every extra, send a record through a broker, and list what was installed. Raises NotReleased.

    Returns the interpreter of the virtualenv in ``folder``.
    """
    say(f"installing the wheel with {EXTRAS}")
    run(python, "-m", "venv", "--without-pip", folder)
    inside = folder / "bin" / "python"
    run(*pip(inside), f"{wheel}[{EXTRAS}]", cwd=folder)
    run(inside, "-I", "-c", _RECORD, cwd=folder)
    described = ("--pyproject", ROOT / "pyproject.toml", "--mc-type", "application", "--output-reproducible")
    run(_BIN / "cyclonedx-py", "environment", "--sv", "1.6", *described, "--output-file", sbom, inside)
    name_the_wheel(sbom, wheel)
    say(f"the SBOM has {len(json.loads(sbom.read_text())['components'])} components")
    return inside


def check_sdist(sdist: Path, folder: Path, inside: Path) -> None:
    """Unpack it, put it in the place of the wheel that ``inside`` has, and run QUICK_TESTS there. Raises NotReleased."""
    say(f"testing the sdist: {' '.join(QUICK_TESTS)}")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (checkout,) = folder.iterdir()
    run(*pip(inside), "--editable", ".", "hypothesis", cwd=checkout)
    tested = run(inside, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", *QUICK_TESTS, cwd=checkout)
    say(tested.splitlines()[-1])


def name_the_wheel(sbom: Path, wheel: Path) -> None:
    """Write the version into the SBOM's main component, which has none where pyproject.toml calls it dynamic."""
    found = json.loads(sbom.read_text())
    found["metadata"]["component"]["version"] = wheel.name.split("-")[1]
    sbom.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def pip(python: Path) -> tuple[str | Path, ...]:
    """The words that install into the virtualenv of ``python``, by the pip of this one."""
    words = ("-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check", "install")
    return (_BIN / "python", *words)


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What it prints. Raises NotReleased with the end of its output if it fails."""
    words = [*map(str, command)]
    kept: Mapping[str, str] = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=cwd, env=kept, capture_output=True, text=True)
    if done.returncode:
        raise NotReleased(f"{' '.join(words)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}".rstrip())
    return done.stdout


def say(text: str) -> None:
    """A line of progress."""
    print(f"release: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
