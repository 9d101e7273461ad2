#!/usr/bin/env bash
# Runs `tests` and `compat_tests` side by side, each in several processes, as most of what they do is waiting; what compat_tests
# says is shown as it comes, what the others said after it: tests, and three stock clients on a cluster of three brokers. Arguments
# are pytest's, for all. Nothing may be skipped. Exit status 1 if one failed. compat_tests/lanes.py says what stays together in
# one process.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.venv/bin:$PATH"

said=$(mktemp)
said_of_cluster=$(mktemp)
cluster=
python -m pytest tests --no-skips -q -n 5 --dist worksteal "$@" >"$said" 2>&1 &
tests=$!
trap 'kill $tests $cluster 2>/dev/null || true; rm -f "$said" "$said_of_cluster"' EXIT
status=0
# With one process, so with one cluster. Brokers are killed in tests; which codecs a client reads is no matter of how many there are.
CI=true python -m pytest compat_tests --brokers 3 --client kafka-python --client confluent-kafka --client java -m 'not restart' \
    --ignore compat_tests/python/test_codecs_across.py -q "$@" >"$said_of_cluster" 2>&1 &
cluster=$!
CI=true python -m pytest compat_tests -q -n 4 --dist loadgroup --no-loadscope-reorder "$@" || status=1
wait $cluster || status=1
cat "$said_of_cluster"
wait $tests || status=1
cat "$said"
exit $status
