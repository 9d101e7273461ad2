#!/bin/sh
# Runs the tests of Spark with pyspark 4.0.0 (.venv) and 4.2.0 (.venv-spark-newest) on Ottla and on Apache Kafka, and writes
# docs/spark-versions.md: a test that Kafka fails is wrong.
#
#   tools/compat_spark.sh [PYTEST'S OPTIONS]
#
# What the options leave out is taken from what the last runs left in build/compat-spark.
set -eu

cd -- "$(dirname -- "$0")/.."
tools/fetch_jars.sh kafka
mkdir -p build/compat-spark
for venv in .venv .venv-spark-newest; do
    for broker in ottla kafka; do
        run=build/compat-spark/$broker$venv
        echo "compat_spark: $run.log shows how far it is" >&2
        CI=true PATH="$(pwd)/$venv/bin:$PATH" "$venv/bin/python" -m ottla compat --broker "$broker" --client spark \
            --timeout 1200 --json "$run-$(date +%s).json" "$@" >"$run.txt" 2>"$run.log" || [ $? -eq 1 ] || {
            tail -n 3 "$run.log" >&2
            exit 1
        }
    done
done
.venv/bin/python -m ottla.compat_tests.spark.versions_page build/compat-spark/*.json >build/compat-spark/page.md
mv build/compat-spark/page.md docs/spark-versions.md
