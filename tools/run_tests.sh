#!/usr/bin/env bash
# Sets up what `make test` needs and runs all of it, so packed that the processors are never idle: whatever can begin does, beside
# the compilers first and later beside tests that mostly wait. compat_tests is shown as it comes, the rest when it has ended.
# Arguments are pytest's, for all. Nothing may be skipped. Exit status 1 if anything failed.
#
# Stock clients, JVMs and Spark have their own races, and there are thousands of tests of them: where at most MOST_RETRIED tests
# failed, each runs a second time, alone, and must pass then; so does Apache Kafka's own build (maxTestRetries and
# maxTestRetryFailures in its build.gradle). Their first failure is shown in full above and named again at the end, for it is a
# bug in a test or worse. A simulation has no such excuse, and gets no second turn.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

MOST_RETRIED=3
LEAST_FREE_GIB=8
# Where it is large enough, what tests write goes to memory: a disk's file system may stand still for seconds, or for half a minute,
# while it forgets the thousands of files that a test has deleted, and then another test's client loses patience.
free=$(df -BG --output=avail /dev/shm 2>/dev/null | tr -dc '0-9' || true)
[ "${free:-0}" -lt $LEAST_FREE_GIB ] || export TMPDIR=/dev/shm
TMPDIR=$(mktemp -d)
export TMPDIR
said=$(mktemp -d)
running=()
trap 'kill ${running[@]+"${running[@]}"} 2>/dev/null || true; rm -rf "$TMPDIR"' EXIT
status=0

beside() { # name, command...
    local name=$1
    shift
    "$@" >"$said/$name" 2>&1 &
    running+=($!)
    eval "$name=$!"
}

quick() {
    # One process first, which keeps what it compiles of the test modules for the others.
    nice -n 5 python -m pytest tests --collect-only -qq >/dev/null || true
    exec nice -n 5 python -m pytest tests --no-skips -m 'not slow or computes' -q -n 3 --dist worksteal "$@"
}

outcome() { # name
    if ! wait "${!1}"; then
        [ "$1" != static ] || status=1
        broken+=("$1")
    fi
    echo "== $1"
    cat "$said/$1"
}

# The tests that a part says have failed, a line each, without the group that they ran in.
failed_of() { # name
    sed -nE '/^(FAILED|ERROR) [^ ]*\.py/ { s/^(FAILED|ERROR) //; s/ - .*//; s/@[^]@]*$//; p }' "$said/$1" | sort -u
}

again() { # name, what a pytest of this part takes...
    local name=$1 tests
    shift
    mapfile -t tests < <(failed_of "$name")
    echo "== second turn of $name: ${tests[*]}"
    python -m pytest -q "$@" "${tests[@]}" || status=1
}

second_turns() { # the parts that failed, which are at most compat, cluster, slow and quick
    local name all=()
    for name in "$@"; do
        mapfile -t -O "${#all[@]}" all < <(failed_of "$name")
        # A part that says of no test that it failed was ended by something else.
        [ -n "$(failed_of "$name")" ] || status=1
    done
    if [ "$status" != 0 ] || [ ${#all[@]} -gt $MOST_RETRIED ] || [[ "${all[*]}" == *tests/simulation/* ]]; then
        status=1
        return
    fi
    for name in "$@"; do
        case $name in
        compat) CI=true again compat ;;
        cluster) CI=true again cluster --brokers 3 ;;
        *) again "$name" --no-skips ;;
        esac
    done
    printf 'FAILED AT FIRST: %s\n' "${all[@]}"
}

tools/setup.sh clients & # for minutes
clients=$!
running+=("$clients")
tools/setup.sh packages
export PATH="$PWD/.venv/bin:$PATH"

# These fill what the others leave of the processors; neither needs more than has been set up by now.
beside static nice -n 5 "${MAKE:-make}" --no-print-directory static
beside quick quick "$@"

tools/setup.sh classes
# tests/lanes.py and compat_tests/lanes.py say what stays together in one process.
lanes=(--dist loadgroup --no-loadscope-reorder --durations 10)
beside slow python -m pytest tests --no-skips -m 'slow and not computes' -q -n 4 "${lanes[@]}" "$@"
# With one process, so with one cluster. Brokers are killed in tests; which codecs a client reads is no matter of how many there are.
CI=true beside cluster python -m pytest compat_tests --brokers 3 --client kafka-python --client confluent-kafka --client java \
    -m 'not restart' --ignore compat_tests/python/test_codecs_across.py -q "$@"

wait "$clients"
broken=()
CI=true python -m pytest compat_tests -q -n 4 "${lanes[@]}" "$@" | tee "$said/compat" || broken=(compat)
for name in static cluster slow; do
    outcome "$name"
done
# Nothing is left that must not wait for these; without the right to say so they go on as they are.
renice -n 0 -p "$quick" $(pgrep -P "$quick") >/dev/null 2>&1 || true
outcome quick
[ ${#broken[@]} = 0 ] || [ "$status" != 0 ] || second_turns "${broken[@]}"
exit $status
