#!/bin/sh
# Runs `ottla compat` on Ottla and then on Apache Kafka (one KRaft node from .jars/kafka-tools-4.3.1, everything in a
# temporary folder), and writes docs/compatibility.md: a test that Kafka fails is wrong.
#
#   tools/compat_oracle.sh [ottla] [kafka] [--client NAME]...
#
# What is not asked for is taken from what the last runs left in build/compat: the other broker, the other clients. A third
# of the clients at a time is no less work, but most of a test is waiting: each broker has three runs at once.
set -eu

cd -- "$(dirname -- "$0")/.."
brokers=
clients=
while [ $# -gt 0 ]; do
    case $1 in
    ottla | kafka) brokers="$brokers $1" ;;
    --client)
        clients="$clients --client ${2:?--client takes a name}"
        shift
        ;;
    *)
        echo "compat_oracle: no broker is called $1 (ottla, kafka)" >&2
        exit 2
        ;;
    esac
    shift
done
tools/fetch_jars.sh kafka
mkdir -p build/compat

third() { # number from 0
    .venv/bin/python -c "from ottla.compat_tests import programs
print(*(f'--client {name}' for name in programs.names()[$1::3]))"
}

compat() { # broker, name of the run, options
    run=build/compat/$1-$2
    broker=$1
    shift 2
    echo "compat_oracle: $run.log shows how far it is" >&2
    # Ten restarts of a JVM in one test take their time. With CI=true a missing toolchain is a failure.
    CI=true .venv/bin/python -m ottla compat --broker "$broker" "$@" --timeout 1200 --html "$run.html" --json "$run.json" \
        >"$run.txt" 2>"$run.log" || [ $? -eq 1 ]
}

for broker in ${brokers:-ottla kafka}; do
    running=
    if [ -n "$clients" ]; then
        # shellcheck disable=SC2086
        compat "$broker" some $clients &
        running=$!
    else
        rm -f "build/compat/$broker-"*
        for number in 0 1 2; do
            # shellcheck disable=SC2046
            compat "$broker" $number $(third $number) &
            running="$running $!"
        done
    fi
    for process in $running; do
        wait "$process" || {
            tail -n 3 "build/compat/$broker-"*.log >&2
            exit 1
        }
    done
done
# Not into the page itself: half a page is worse than the old one. Of a test that was run again the last result counts.
set -- build/compat/ottla-*.json
[ ! -e build/compat/kafka-0.json ] || set -- "$@" build/compat/kafka-*.json
.venv/bin/python -m ottla.compat_tests.markdown_page "$@" >build/compat/page.md
mv build/compat/page.md docs/compatibility.md
