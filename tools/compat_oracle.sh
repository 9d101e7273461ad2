#!/bin/sh
# Runs compat_tests against Apache Kafka, which it starts from .jars/kafka-tools-4.3.1 (one KRaft node, everything in a
# temporary folder), and writes the table of clients and capabilities: a test that Kafka fails is wrong.
#
#   tools/compat_oracle.sh [pytest's arguments]
set -eu

cd -- "$(dirname -- "$0")/.."
tools/fetch_jars.sh kafka
# Ten restarts of a JVM in one test take their time.
exec .venv/bin/python -m pytest compat_tests --broker kafka --capability-table docs/compat-oracle.md --timeout 1200 "$@"
