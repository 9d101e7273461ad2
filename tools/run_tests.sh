#!/usr/bin/env bash
# Sets up what `make test` needs and runs all of it, so packed that the processors are never idle: whatever can begin does, beside
# the compilers first and later beside tests that mostly wait. compat_tests is shown as it comes, the rest when it has ended.
# Arguments are pytest's, for all. Nothing may be skipped. Exit status 1 if anything failed.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

said=$(mktemp -d)
running=()
trap 'kill ${running[@]+"${running[@]}"} 2>/dev/null || true; rm -rf "$said"' EXIT
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
    wait "${!1}" || status=1
    echo "== $1"
    cat "$said/$1"
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
CI=true python -m pytest compat_tests -q -n 4 "${lanes[@]}" "$@" || status=1
for name in static cluster slow quick; do
    outcome "$name"
done
exit $status
