#!/bin/sh
# Fetches sets of jars with Maven into .jars/<folder>, each described by tools/jars/<folder>/pom.xml.
#
#   tools/fetch_jars.sh wire       kafka-clients-4.4.0, kafka-clients-3.9.2, coordinators-4.3.1: Kafka's own serializers
#   tools/fetch_jars.sh kafka      kafka-tools-4.3.1: Apache Kafka's server and command-line tools
#   tools/fetch_jars.sh zookeeper  kafka-3.9.2: Apache Kafka's last server for ZooKeeper, and ZooKeeper's own
#   tools/fetch_jars.sh mixed      kafka-tools-3.9.2: the command-line tools of that server
#   tools/fetch_jars.sh streams    kafka-streams-4.3.1: Kafka Streams
#   tools/fetch_jars.sh connect    connect-4.3.1: Kafka Connect and its connectors for files
#   tools/fetch_jars.sh spark      spark-kafka-4.0.0: Spark's Kafka connector and its Avro; spark-tables-4.0.0: Delta, Iceberg
#   tools/fetch_jars.sh spark-newest  spark-kafka-4.2.0: the connector of the newest pyspark that is tested
#
# A folder already fetched from the same description is left alone, so it costs nothing to call this again. Other files
# beside the pom.xml are copied next to the jars. Say nothing when all went well and there was nothing to do.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)

fetch() { # folder
    description=$root/tools/jars/$1
    target=$root/.jars/$1
    wanted=$(cat "$description"/* | cksum)
    if [ "$(cat "$target/.fetched" 2>/dev/null)" = "$wanted" ]; then
        return
    fi
    if ! command -v mvn >/dev/null 2>&1; then
        echo "fetch_jars: Maven (mvn) is missing; it is needed to fetch $1" >&2
        exit 1
    fi
    echo "fetch_jars: fetching $1" >&2
    mkdir -p "$root/.jars"
    # A folder of its own, renamed at the end: an interrupted run leaves nothing that looks fetched.
    fresh=$root/.jars/.$1.$$
    rm -rf "$fresh"
    if ! mvn -B -q -f "$description/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
        "-DoutputDirectory=$fresh" >"$root/.jars/$1.log" 2>&1; then
        tail -n 20 "$root/.jars/$1.log" >&2
        rm -rf "$fresh"
        echo "fetch_jars: Maven could not fetch $1" >&2
        exit 1
    fi
    for file in "$description"/*; do
        [ "${file##*/}" = pom.xml ] || cp "$file" "$fresh/"
    done
    echo "$wanted" >"$fresh/.fetched"
    rm -rf "$target"
    mv "$fresh" "$target"
    rm -f "$root/.jars/$1.log"
}

[ $# -gt 0 ] || {
    sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
for name in "$@"; do
    case $name in
    wire)
        fetch kafka-clients-4.4.0
        fetch kafka-clients-3.9.2
        fetch coordinators-4.3.1
        ;;
    kafka) fetch kafka-tools-4.3.1 ;;
    zookeeper) fetch kafka-3.9.2 ;;
    mixed) fetch kafka-tools-3.9.2 ;;
    streams) fetch kafka-streams-4.3.1 ;;
    connect) fetch connect-4.3.1 ;;
    spark)
        fetch spark-kafka-4.0.0
        fetch spark-tables-4.0.0
        ;;
    spark-newest) fetch spark-kafka-4.2.0 ;;
    *)
        echo "fetch_jars: no set of jars is called $name (wire, kafka, zookeeper, mixed, streams, connect, spark, spark-newest)" >&2
        exit 2
        ;;
    esac
done
