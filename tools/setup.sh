#!/bin/sh
# Builds what a make target needs, and nothing twice.
#
#   tools/setup.sh run      .venv with the run-time dependencies, and those of the metrics and the console
#   tools/setup.sh cluster  and the jars of ZooKeeper
#   tools/setup.sh check    the first, and what ruff, mypy, import-linter and the unit tests need (they drive Python clients)
#   tools/setup.sh docs     the first, and what builds the site
#   tools/setup.sh bench    the virtualenv of test, and the jars of Apache Kafka
#   tools/setup.sh test     .venv with every Python package of the tests, and what java builds, if there is a Java
#
# What parts of the tests need beside that (tools/suite/parts.py says which part needs what):
#
#   tools/setup.sh java            the jars of Kafka's serializers, ZooKeeper and Spark; an archive of Spark's classes
#   tools/setup.sh kafka           and of Apache Kafka's brokers and tools, Streams and Connect; an archive of the tools' classes
#   tools/setup.sh go, js, rust    the drivers of clients in other languages
#   tools/setup.sh kafka-python-2  .venv-kafka-python-2 with the last 2.x
#   tools/setup.sh kcat            kcat, in .venv where the machine has none
#   tools/setup.sh browser         Chromium
#   tools/setup.sh zsh             zsh
#   tools/setup.sh pypy            .venv-pypy with Ottla and pytest, by the pypy3 on the PATH
#   tools/setup.sh spark-newest    .venv-spark-newest with what the tests of Spark need, pyspark 4.2.0 being the Spark; and its jars
#   tools/setup.sh release         .venv-release with what builds and checks a release
#
# What benchmarks need beside bench, if they are to say what another Python does:
#
#   tools/setup.sh broker-python   .venv-broker-python with Ottla, by the program that $BROKER_PYTHON names
#
# Each step leaves a stamp in its virtualenv with the checksum of pyproject.toml and this file, and is repeated when they change, or
# when somebody's pip has put a copy of Ottla in the place of the checkout. A virtualenv is made anew when the checkout was moved, for
# its scripts hold absolute paths.
#
# Java, Maven, Chromium and zsh are installed by apt-get where this is root on Debian. Exit status 3: a program is missing that
# this does not install here; standard error names it.
set -eu

cd -- "$(dirname -- "$0")/.."
level=${1:-}

need() { # command, what it is
    command -v "$1" >/dev/null 2>&1 || missing="${missing:+$missing, }$2"
}

find_python() {
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            python=$candidate
            return
        fi
    done
    missing="${missing:+$missing, }Python 3.11 or newer with venv (python3)"
}

java_is_17() { # and a JDK, for tests compile programs
    version=$("${JAVA_HOME:+$JAVA_HOME/bin/}javac" -version 2>&1 | sed -n 's/^javac \([0-9]*\).*/\1/p')
    [ "${version:-0}" -ge 17 ]
}

apt_install() { # packages of Debian; false where this may not be done
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    echo "setup: installing $*" >&2
    apt-get update -qq >/dev/null 2>&1 || true
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1
}

need_java() {
    java_is_17 || apt_install openjdk-17-jdk-headless || apt_install default-jdk-headless || true
    java_is_17 || missing="${missing:+$missing, }a JDK of Java 17 or newer (javac)"
    need_program mvn maven "Maven (mvn)"
}

is_new_enough() { # a Python
    "$1" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

need_program() { # command, Debian's package, what it is
    command -v "$1" >/dev/null 2>&1 || apt_install "$2" || true
    need "$1" "$3"
}

stop_if_missing() {
    if [ -n "$missing" ]; then
        echo "setup: this needs what is not here: $missing" >&2
        exit 3
    fi
}

go_is_new_enough() { # than what the clients in Go ask for
    least=$(sed -n 's/^go //p' compat_tests/clients/go/go.mod)
    version=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null | sed -n 's/^go\([0-9.]*\).*/\1/p')
    [ -n "$version" ] && [ "$(printf '%s\n%s\n' "$least" "$version" | sort -V | head -n 1)" = "$least" ]
}

make_venv() { # folder
    here=$(pwd)
    if [ -x "$1/bin/python" ] && [ "$(cat "$1/.checkout" 2>/dev/null)" = "$here" ]; then
        return
    fi
    echo "setup: making $1" >&2
    "$python" -m venv --clear "$1"
    echo "$here" >"$1/.checkout"
}

stamped() { # venv, step
    [ "$(cat "$1/.stamp-$2" 2>/dev/null)" = "$wanted" ]
}

runs_checkout() { # venv; false where it has a copy, as `pip install .` makes one
    for copy in "$1"/lib/python*/site-packages/ottla; do
        if [ -d "$copy" ]; then return 1; fi
    done
}

pip_install() { # venv, arguments
    venv=$1
    shift
    # The build backend warns of every editable install; that is noise here.
    PYTHONWARNINGS=ignore "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

install() { # step, arguments of pip; a later step holds all of the earlier ones
    step=$1
    shift
    case $step in
    run) holders="run check docs test" ;;
    check) holders="check test" ;;
    docs) holders="docs test" ;;
    *) holders=$step ;;
    esac
    done=
    for holder in $holders; do
        if stamped .venv "$holder"; then done=yes; fi
    done
    if [ -z "$done" ] || ! runs_checkout .venv; then
        echo "setup: installing into .venv ($step)" >&2
        if [ "$step" != run ]; then
            pip_install .venv --upgrade 'pip>=25.1' # the first that reads [dependency-groups]
        fi
        pip_install .venv "$@"
        echo "$wanted" >".venv/.stamp-$step"
    fi
}

install_kafka_python_2() {
    make_venv .venv-kafka-python-2
    if ! stamped .venv-kafka-python-2 clients; then
        echo "setup: installing kafka-python 2 into .venv-kafka-python-2" >&2
        pip_install .venv-kafka-python-2 'kafka-python>=2.2,<3' 'crc32c>=2.7' 'lz4>=4.3' 'python-snappy>=0.7.3' 'zstandard>=0.23'
        echo "$wanted" >.venv-kafka-python-2/.stamp-clients
    fi
}

install_run() {
    install run --editable '.[console,metrics]'
}

install_test() { # with the oldest pyspark that the extra takes
    install test --editable '.[compat,metrics,console-formats,spark]' 'pyspark==4.0.0' --group dev --group docs --group browser
}

install_java() {
    tools/fetch_jars.sh wire zookeeper spark
    install_test # the archive is made by a job of Spark
    archive_classes spark
}

install_kafka() {
    install_java
    tools/fetch_jars.sh kafka mixed streams connect
    archive_classes kafka
}

archive_classes() { # whose, spark or kafka: it halves what a JVM of theirs takes to start
    if ! stamped .venv "$1-classes"; then
        echo "setup: archiving the classes of $1" >&2
        .venv/bin/python "tools/$1_classes.py" >".venv/$1-classes.log" 2>&1 || {
            cat ".venv/$1-classes.log" >&2
            exit 1
        }
        echo "$wanted" >".venv/.stamp-$1-classes"
    fi
}

install_on() { # Python, virtualenv, arguments of pip; the pip is that of .venv, for Debian's Pythons have none
    other=$1
    venv=$2
    shift 2
    identity="$wanted $("$other" -c 'import sys; print(sys.executable, sys.version.replace("\n", " "))')"
    if [ "$(cat "$venv/.stamp-python" 2>/dev/null)" = "$identity" ] && [ "$(cat "$venv/.checkout")" = "$(pwd)" ]; then
        return
    fi
    echo "setup: installing into $venv by $other" >&2
    "$other" -m venv --clear --without-pip "$venv"
    pwd >"$venv/.checkout"
    if "$other" -c 'import sys; sys.exit(sys.implementation.name != "pypy")'; then
        # Later wheels want a function (PyModule_FromDefAndSpec2) that PyPy 7.3.19 lacks.
        set -- "$@" 'cramjam<2.12' 'cryptography<46'
    fi
    PYTHONWARNINGS=ignore .venv/bin/python -m pip --python "$venv/bin/python" install --quiet --disable-pip-version-check "$@"
    echo "$identity" >"$venv/.stamp-python"
}

install_pypy() { # hypothesis as its wheels, likewise
    install_on pypy3 .venv-pypy --editable . 'pytest>=8.3,<9.2' 'pytest-timeout>=2.3' 'pytest-xdist>=3.6' 'hypothesis>=6.115,<6.140'
}

install_spark_newest() {
    make_venv .venv-spark-newest
    if ! stamped .venv-spark-newest spark; then
        echo "setup: installing pyspark 4.2.0 into .venv-spark-newest" >&2
        pip_install .venv-spark-newest --editable '.[compat,jobs]' 'pyspark[pipelines]==4.2.0' 'pytest<9.2' 'pytest-xdist>=3.6'
        echo "$wanted" >.venv-spark-newest/.stamp-spark
    fi
}

install_release() {
    make_venv .venv-release
    if ! stamped .venv-release release; then
        echo "setup: installing what makes a release into .venv-release" >&2
        pip_install .venv-release --upgrade 'pip>=25.1' # the first that reads [dependency-groups]
        pip_install .venv-release --group release
        echo "$wanted" >.venv-release/.stamp-release
    fi
}

missing=
case $level in
run | check | docs) find_python ;;
bench | cluster)
    find_python
    java_is_17 || missing="${missing:+$missing, }a JDK of Java 17 or newer (javac)"
    need mvn "Maven (mvn)"
    ;;
test | kafka-python-2 | release) find_python ;;
java | kafka | spark-newest)
    find_python
    need_java
    ;;
go) go_is_new_enough || missing="Go $least or newer (go)" ;;
js)
    need node "Node.js 20 (node)"
    need npm npm
    ;;
rust)
    need cargo "Rust 1.85 or newer (cargo)"
    need c++ "a C++ compiler (c++)"
    ;;
browser) need_program chromium chromium "Chromium (chromium)" ;; # Debian's: playwright's own is elsewhere
zsh) need_program zsh zsh zsh ;;
kcat) ;;
pypy)
    find_python
    is_new_enough pypy3 || missing="${missing:+$missing, }PyPy for Python 3.11 or newer (pypy3)"
    ;;
broker-python)
    find_python
    is_new_enough "${BROKER_PYTHON:-nothing}" || missing="${missing:+$missing, }Python 3.11 or newer (\$BROKER_PYTHON is ${BROKER_PYTHON:-empty})"
    ;;
*)
    sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
stop_if_missing

wanted=$(cat pyproject.toml tools/setup.sh | cksum)
case $level in
go | js | rust)
    tools/build_clients.sh "$level"
    exit
    ;;
browser | zsh) exit ;;
kafka-python-2)
    install_kafka_python_2
    exit
    ;;
release)
    install_release
    exit
    ;;
spark-newest)
    install_spark_newest
    tools/fetch_jars.sh spark-newest
    exit
    ;;
esac
make_venv .venv
mkdir -p .venv/typing
# Type checkers don't follow the hook of an editable install; they find the package through this link.
[ -L .venv/typing/ottla ] || ln -s ../.. .venv/typing/ottla

case $level in
run) install_run ;;
cluster)
    install_run
    tools/fetch_jars.sh zookeeper
    ;;
check) install check --editable '.[compat,metrics,console-formats,jobs]' --group dev ;;
docs) install docs --editable '.[console,metrics]' --group docs ;;
kcat) tools/fetch_kcat.sh ;;
pypy)
    install_run
    install_pypy
    ;;
broker-python)
    install_run
    install_on "$BROKER_PYTHON" .venv-broker-python --editable .
    ;;
java) install_java ;;
kafka) install_kafka ;;
test)
    install_test
    need_java
    if [ -z "$missing" ]; then
        install_java
    else
        echo "setup: what needs it is left out of the tests: $missing" >&2
    fi
    ;;
bench)
    install_test
    tools/fetch_jars.sh kafka
    ;;
esac
