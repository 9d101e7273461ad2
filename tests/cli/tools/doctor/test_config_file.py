"""What ``ottla doctor`` sees in the file of a stopped broker."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.cli.tools.doctor.config_file import examine
from ottla.cli.tools.doctor.diagnosis import Diagnosis, DiagnosisLevel
from ottla.security.tls_certificates import issue, make_authority

Examined = Callable[..., list[Diagnosis]]


@pytest.fixture
def examined(tmp_path: Path) -> Examined:
    """The lines of a file with these lines, beside one that names a log directory that is there."""

    def examine_lines(*properties: str) -> list[Diagnosis]:
        file, data = tmp_path / "server.properties", tmp_path / "data"
        data.mkdir(exist_ok=True)
        file.write_text("\n".join((f"log.dirs={data}", *properties)))
        return examine(file)

    return examine_lines


def what(lines: list[Diagnosis], level: DiagnosisLevel) -> list[str]:
    return [line.what for line in lines if line.level is level]


def test_a_file_that_is_well(examined: Examined) -> None:
    lines = examined("num.partitions=3", "node.id=7")
    assert "3 properties of" in lines[0].what and lines[0].level is DiagnosisLevel.OK
    assert not what(lines, DiagnosisLevel.UNKNOWN)


def test_names(examined: Examined, tmp_path: Path) -> None:
    lines = examined(
        "num.partition=3", "num.io.threads=8", "listener.name.x.ssl.keystore.locaton=a", "delegation.token.master.key=x"
    )
    file = tmp_path / "server.properties"
    strange = "is not a property of Kafka or Ottla"
    assert what(lines, DiagnosisLevel.WARNING) == [
        f"listener.name.x.ssl.keystore.locaton in {file} {strange}; did you mean ssl.keystore.location?",
        f"num.partition in {file} {strange}; did you mean num.partitions?",
    ]
    deprecated, unused = what(lines, DiagnosisLevel.NOTE)
    assert "delegation.token.master.key" in deprecated and "delegation.token.secret.key takes its place" in deprecated
    assert unused.endswith("has no effect on Ottla: num.io.threads")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("log.retention.ms=soon", "Invalid value soon for configuration log.retention.ms"),
        ("listeners=PLAINTEXT://:1,OTHER://:2", "listener.security.protocol.map does not name OTHER"),
        ("log.dir=\\u12", "not a properties file"),
    ],
)
def test_values_with_which_no_broker_starts(examined: Examined, line: str, why: str) -> None:
    (found,) = what(examined(line), DiagnosisLevel.PROBLEM)
    assert why in found


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (line,) = examine(tmp_path / "none")
    assert (line.level, line.what) == (
        DiagnosisLevel.PROBLEM,
        f"{tmp_path / 'none'} cannot be read: No such file or directory",
    )


def test_log_directories(examined: Examined, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    lines = examined(f"log.dirs={tmp_path / 'file'},{tmp_path / 'away'}")
    assert what(lines, DiagnosisLevel.PROBLEM) == [f"The log directory {tmp_path / 'file'} is not a directory"]
    assert what(lines, DiagnosisLevel.NOTE) == [
        f"The log directory {tmp_path / 'away'} does not exist; a broker makes it when it starts"
    ]


@pytest.mark.parametrize(
    ("days", "level"), [(1, DiagnosisLevel.PROBLEM), (20, DiagnosisLevel.WARNING), (300, DiagnosisLevel.OK)]
)
def test_a_key_store_whose_certificate_ends(
    examined: Examined, tmp_path: Path, days: int, level: DiagnosisLevel
) -> None:
    now = datetime.datetime.now(datetime.UTC)
    store = tmp_path / "broker.pem"
    store.write_text(issue(make_authority("ca", 365, now), "broker", days, now).key_store)
    lines = examined("listeners=SSL://127.0.0.1:9093", f"ssl.keystore.location={store}", "ssl.keystore.type=PEM")
    assert [line.level for line in lines if "The certificate of the listener SSL" in line.what] == [level]


def test_a_listener_without_a_key_store(examined: Examined) -> None:
    assert what(examined("listeners=SSL://127.0.0.1:9093"), DiagnosisLevel.PROBLEM) == [
        "The listener SSL has no ssl.keystore.location"
    ]
