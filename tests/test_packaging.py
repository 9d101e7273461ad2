"""What leaves the checkout is what is in it: sdist and wheel hold every module, and the wheel works on its own."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections import defaultdict
from pathlib import Path

import pytest

import ottla
from ottla.compat_tests.conftest import NOT_OURS
from ottla.tools.release import QUICK_TESTS

from .helpers.pages import outcomes, quickstarts

ROOT = Path(__file__).resolve().parent.parent
NOT_SHIPPED = {"tests", "bench", "docs", "tools", ".ci"}


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=540)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def in_checkout() -> set[str]:
    """Every file of the checkout, as a path relative to its root."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    return {path for path in listed if (ROOT / path).exists()}


@pytest.fixture(scope="module")
def shipped(in_checkout: set[str]) -> set[str]:
    """Those of the package."""
    folders = {path.split("/")[0] for path in in_checkout if path.endswith("/__init__.py")} - NOT_SHIPPED
    return {
        path
        for path in in_checkout
        if path.split("/")[0] in folders or path in ("__init__.py", "__main__.py", "py.typed")
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return folder


@pytest.mark.slow
def test_sdist_holds_the_package_some_tests_and_nothing_of_the_workshop(built: Path, shipped: set[str]) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert shipped <= names
    assert {"LICENSE", "README.md", "pyproject.toml"} <= names
    others = {name for name in names if name.endswith(".py")} - shipped - {"setup.py"}
    helpers = ("tests/helpers", "tests/security/helpers", "tests/conftest.py", "tests/xdist_groups.py")
    assert {name for name in others if not name.startswith((*QUICK_TESTS, *helpers))} == set()


@pytest.mark.slow
def test_wheel_holds_exactly_the_package(built: Path, shipped: set[str]) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    outside = {name for name in names if not name.startswith("ottla/")}
    assert all(name.split("/")[0].endswith(".dist-info") for name in outside), "only ottla is put into site-packages"
    assert {name.removeprefix("ottla/") for name in names - outside} == shipped


IMPORT_ALL = """
import importlib, pkgutil, sys
import ottla
skipped = (
    "ottla.spark",
    "ottla.broker.http",
    "ottla.broker.metrics",
    "ottla.console",
    "ottla.compat_tests",
    "ottla.testing.marked_options",
    "ottla.testing.plugin",
    "ottla.__main__",
)
for module in pkgutil.walk_packages(ottla.__path__, "ottla."):
    if not module.name.startswith(skipped) and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(ottla.__file__)
"""


def make_virtualenv(folder: Path, wanted: str, *, beside: Path | None = None) -> Path:
    """The interpreter of a virtualenv with what is ``wanted``; what is in the one ``beside`` it is in it, too.

    It is this environment's pip that fills it, and only what is imported is compiled: half a minute less of the processor.
    """
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    if beside is not None:
        (folder / _site_packages(python) / "beside.pth").write_text(str(beside / _site_packages(python)))
    pip = (sys.executable, "-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check")
    run(*pip, "install", "--no-compile", wanted)
    return python


def _site_packages(python: Path) -> Path:
    """Relative to a virtualenv of this version of Python."""
    code = "import sys, sysconfig; print(sysconfig.get_path('purelib').removeprefix(sys.prefix + '/'))"
    return Path(run(python, "-I", "-c", code).strip())


@pytest.fixture(scope="module")
def clean(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtualenv with the wheel and what it needs to run, and nothing else."""
    (wheel,) = built.glob("*.whl")
    folder = tmp_path_factory.mktemp("clean-venv")
    make_virtualenv(folder, str(wheel))
    return folder


@pytest.mark.slow
def test_wheel_works_in_a_clean_virtualenv(clean: Path, tmp_path: Path) -> None:
    """Every module but those of the extras imports with the run-time dependencies alone; the plugin is imported by pytest."""
    python = clean / "bin" / "python"
    # -I: not even the PYTHONPATH that these tests run with leads to the checkout.
    place = run(python, "-I", "-c", IMPORT_ALL, cwd=tmp_path).strip()
    assert Path(place).is_relative_to(clean)
    assert "serve" in run(python, "-I", "-m", "ottla", "--help", cwd=tmp_path)
    assert "serve" in run(clean / "bin" / "ottla", "--help", cwd=tmp_path)


PLUGIN_TESTS = """
import sys

def test_the_plugin_is_there_and_has_imported_nothing(request):
    assert request.config.pluginmanager.has_plugin("ottla")
    assert not {"trio", "ottla.testing.broker", "ottla.broker"} & sys.modules.keys()

def test_the_broker_is_imported_as_it_is(ottla_broker):
    loaders = {type(module.__spec__.loader).__module__ for name, module in sys.modules.items() if name.startswith("ottla.broker")}
    assert loaders == {"_frozen_importlib_external"}
"""


@pytest.fixture(scope="module")
def project_python(built: Path, clean: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtualenv with the wheel and what its extra ``compat`` brings, pytest among it."""
    (wheel,) = built.glob("*.whl")
    return make_virtualenv(tmp_path_factory.mktemp("project-venv"), f"{wheel}[compat]", beside=clean)


@pytest.mark.slow
def test_a_project_that_installs_the_wheel_has_the_fixtures(project_python: Path, tmp_path: Path) -> None:
    """The quickstart of the fixtures, in a project that knows of Ottla by its requirements only."""
    (tmp_path / "test_orders.py").write_text(quickstarts()["pytest"][1])
    (tmp_path / "test_plugin.py").write_text(PLUGIN_TESTS)
    python = (project_python, "-I", "-m", "pytest", "-q")
    assert outcomes(run(*python, "test_orders.py", cwd=tmp_path)) == {"passed": 1}
    assert outcomes(run(*python, "test_plugin.py", cwd=tmp_path)) == {"passed": 2}


@pytest.mark.slow
def test_the_compatibility_suite_runs_from_the_wheel(
    project_python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With nothing but what the extra brings: every file of the suite is read, and clients without a toolchain are skipped."""
    monkeypatch.delenv("CI", raising=False)  # in CI nothing is skipped
    monkeypatch.delenv("OTTLA_JARS", raising=False)
    clients = ("kafka-python", "spark", "kafka-streams")
    asked = [word for client in clients for word in ("--client", client)]
    with ottla.Broker() as broker:
        at = ("compat", "--bootstrap-server", broker.bootstrap_servers)
        words = (*at, *asked, "-k", "test_keys_choose_partitions or test_formats or test_streams")
        printed = run(project_python, "-I", "-m", "ottla", *words, cwd=tmp_path)
    # The last rows are of what kills the broker, and is not tried on this one.
    found = {
        (line[0], line[2].split()[0]): line[4] for line in map(_fields, printed.splitlines()) if line[4] != NOT_OURS
    }
    assert found.keys() == {("kafka-python", "pass"), ("spark", "skipped"), ("kafka-streams", "skipped")}
    assert "pyspark is missing" in found["spark", "skipped"]
    assert "no jars in" in found["kafka-streams", "skipped"]


def _fields(line: str) -> list[str]:
    return line.split("\t")


HOW_TO_INSTALL = "from ottla.base.wording import how_to_install; print(how_to_install('metrics'))"
PLACE = "import ottla, jinja2, prometheus_client; print(ottla.__file__)"


@pytest.mark.slow
def test_make_run_starts_what_is_in_the_checkout(in_checkout: set[str], tmp_path: Path) -> None:
    """With console and metrics, whatever pip was told to do with its virtualenv; the message about a part says the right."""
    checkout, elsewhere = tmp_path / "checkout", tmp_path / "elsewhere"
    elsewhere.mkdir()
    for path in in_checkout:
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, checkout / path)
    python = checkout / ".venv" / "bin" / "python"

    def place() -> Path:
        return Path(run(python, "-I", "-c", PLACE, cwd=elsewhere).strip()).parent

    run("sh", "tools/setup.sh", "run", cwd=checkout)
    assert place() == checkout
    run("sh", "-c", run(python, "-I", "-c", HOW_TO_INSTALL, cwd=elsewhere), cwd=elsewhere)
    assert place() == checkout
    run(python, "-m", "pip", "install", "--quiet", ".", cwd=checkout)
    assert place() != checkout
    run("sh", "tools/setup.sh", "run", cwd=checkout)
    assert place() == checkout
    anywhere = ("--port", "0", "--zookeeper-port", "0", "--folder", elsewhere)
    done = subprocess.run(
        [python, "-I", "tools/cluster.py", "--zookeeper", *anywhere],
        cwd=checkout,
        env={name: value for name, value in os.environ.items() if name != "OTTLA_JARS"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert done.stderr.startswith(f"cluster: no jars in {checkout}/.jars/")


@pytest.mark.parametrize("arguments", [["--help"], ["serve", "--help"], ["--version"]])
def test_command_line_answers(arguments: list[str]) -> None:
    output = run(sys.executable, "-m", "ottla", *arguments)
    if arguments == ["--version"]:
        assert output.strip().endswith(ottla.__version__)
    else:
        assert "Usage" in output


def test_no_file_of_the_package_is_loaded_under_two_names() -> None:
    """pytest imports tests in its own way; a module loaded twice would have two of every class."""
    names: defaultdict[Path, set[str]] = defaultdict(set)
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and Path(file).is_relative_to(ROOT) and ".venv" not in file and name != "__main__":
            names[Path(os.path.realpath(file))].add(name)
    assert names, "the package was loaded from this checkout"
    # pytest imports the packages round a test file under a name of its own too. That does no harm where there is nothing
    # in them; the root, whose __init__ hands out names on demand, keeps no state either.
    doubles = {str(file): found for file, found in names.items() if len(found) > 1 and not _is_empty_package(file)}
    doubles.pop(str(ROOT / "__init__.py"), None)
    assert not doubles


def _is_empty_package(file: Path) -> bool:
    """Whether the file is an ``__init__.py`` with a docstring at most."""
    if file.name != "__init__.py":
        return False
    return all(isinstance(statement, ast.Expr) for statement in ast.parse(file.read_text()).body)


def test_importing_the_package_loads_nothing_else() -> None:
    """``import ottla`` is free; the broker is imported when one of its names is first used."""
    output = run(sys.executable, "-c", "import sys, ottla; print([n for n in sys.modules if n.startswith('ottla')])")
    assert output.strip() == "['ottla']"
