# GNU make. `make help` lists the targets; tools/setup.sh builds what they need.

VENV := .venv
PYTHON_IN_VENV := $(VENV)/bin/python
COMPILEALL := $(PYTHON_IN_VENV) -m compileall -q -x '/[.]|/data/|/build/' .

# Containers often forbid Python to keep what it compiles; then every process of the tests compiles all test modules again, which
# takes longer than many of the tests do.
export PYTHONDONTWRITEBYTECODE :=

# Arguments of the program behind a target: make run ARGS='--log-level debug', make bench ARGS='--pairs 1 --scale 0.1'.
ARGS :=

# make simulate SEEDS=1000 runs the seeds 0 to 999, SEEDS=5000-5999 those, SEEDS=123-123 one, with all that happened in it;
# with CLUSTER=1 they are seeds of a cluster, in which more goes wrong with HARSH=1; with BREAK=no_epoch_truncation, or any other
# of tests/simulation/cluster/breakages.py, they run until one finds that rule broken. With RAFT=1 they are seeds of a quorum, with
# CLUSTER=1 QUORUM=1 of a cluster whose metadata a quorum keeps, with GROUP=1 of a consumer group, with SHARE=1 of a share group, with
# GROUP=1 SHARE=1 of its members; each has breakages of its own.
SEEDS := 300

# make jepsen: minutes of faults, what decides which, and on what: ottla, kafka, mixed, mixed-kafka; on quorums of KRaft quorum,
# own-quorum, own-controllers, kafka-on-own.
MINUTES := 5
SEED := 1
SYSTEM := ottla

# make bench BROKER_PYTHON=pypy3: what Ottla's brokers run on; by default what .venv was made with.
export BROKER_PYTHON :=

.DEFAULT_GOAL := help
.PHONY: run cluster setup setup-all check test test-all stress simulate jepsen bench bench-failover bench-quorums bench-machine bench-archive bench-groups bench-share-groups compat-oracle compat-spark docs release platforms screenshots clean help static

run: ## start a broker on 127.0.0.1:9092 with its data in ./data (Ctrl-C stops it)
	@tools/setup.sh run
	@exec $(VENV)/bin/ottla serve --listen 127.0.0.1:9092 --data-dir data $(ARGS)

cluster: ## start three brokers on 127.0.0.1:9092, 9094 and 9096 with their data in ./data/cluster (Ctrl-C stops all)
	@tools/setup.sh $(if $(findstring --zookeeper,$(ARGS)),cluster,run)
	@exec $(PYTHON_IN_VENV) tools/cluster.py $(ARGS)

setup: ## build everything `make test` needs, and byte-compile
	@tools/setup.sh test
	@$(COMPILEALL)

static:
	$(PYTHON_IN_VENV) -m ruff check .
	$(PYTHON_IN_VENV) -m ruff format --check .
	$(PYTHON_IN_VENV) -m mypy
	$(PYTHON_IN_VENV) -m mypy --platform darwin --cache-dir .mypy_cache/darwin
	$(VENV)/bin/lint-imports
	$(COMPILEALL)

check: ## the quick part, two to four minutes: ruff, mypy, import-linter, compileall, unit tests
	@tools/setup.sh check
	@$(MAKE) --no-print-directory static
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PYTHON_IN_VENV) -m pytest tests -m 'not slow' -q -n 2 --dist worksteal $(ARGS)

test: ## everything CI runs, in less than fifteen minutes; what needs Java is left out where there is none
	@began=$$(date +%s); tools/setup.sh test && OTTLA_TEST_SETUP_BEGAN=$$began $(PYTHON_IN_VENV) -m ottla.tools.suite test $(ARGS)

test-all: ## every test, in lanes by toolchain and subject; ARGS="--lane go-clients", "--resume", "--table"
	@tools/setup.sh test
	@$(PYTHON_IN_VENV) -m ottla.tools.suite all $(ARGS)

stress: ## a selection of tests many times beside processor load: ARGS="-k moves --times 20"; for new tests, before they are merged
	@tools/setup.sh check
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(PYTHON_IN_VENV) tools/stress.py $(ARGS)

simulate: ## SEEDS=1000 or SEEDS=5000-5999: a broker, with CLUSTER=1 several, with RAFT=1 a quorum, with GROUP=1 a consumer group, with SHARE=1 a share group, in simulated time with crashes and cut connections
	@tools/setup.sh check
	$(PYTHON_IN_VENV) -m ottla.tests.simulation $(if $(RAFT),--raft) $(if $(GROUP),--group) $(if $(SHARE),--share) $(if $(CLUSTER),--cluster) $(if $(QUORUM),--quorum) $(if $(HARSH),--harsh) $(if $(BREAK),--break $(BREAK)) $(SEEDS)

jepsen: ## MINUTES=5 SEED=1 SYSTEM=ottla: faults of every kind on a cluster of processes under load, its history checked; ends in build/jepsen
	@tools/setup.sh cluster
	@tools/setup.sh check
	@$(PYTHON_IN_VENV) -m ottla.tests.jepsen --minutes $(MINUTES) --seed $(SEED) --system $(SYSTEM) $(ARGS)

bench: ## the same load on Ottla and Apache Kafka, alternating; table in bench/results/broker.md; BROKER_PYTHON=/usr/bin/python3 runs Ottla
	@tools/setup.sh bench
	$(if $(BROKER_PYTHON),@tools/setup.sh broker-python)
	$(PYTHON_IN_VENV) -m bench $(if $(BROKER_PYTHON),--python .venv-broker-python/bin/python) $(ARGS)

bench-failover: ## three brokers killed and restarted under load, Ottla's and Apache Kafka 3.9's in turn; ARGS="--turns 1"
	@tools/setup.sh bench
	@tools/fetch_jars.sh zookeeper
	$(PYTHON_IN_VENV) -m bench.failover $(ARGS)

bench-quorums: ## clusters of KRaft, Ottla's and Apache Kafka's in turn: failovers, elections, starts, many partitions; ARGS="--rows election"
	@tools/setup.sh bench
	@tools/setup.sh kafka
	$(PYTHON_IN_VENV) -m bench.quorums $(ARGS)

bench-machine: ## one broker and two of a machine, and Apache Kafka, under two load generators; ARGS="--turns 1"
	@tools/setup.sh bench
	$(PYTHON_IN_VENV) -m bench.machine $(ARGS)

bench-groups: ## consumer groups of KIP-848, Ottla's and Apache Kafka's in turn: 1,000 members, rebalances; ARGS="--rows '50 members' --turns 1"
	@tools/setup.sh bench
	$(PYTHON_IN_VENV) -m bench.consumer_groups $(ARGS)

bench-share-groups: ## share groups of KIP-932, Ottla's and Apache Kafka's in turn: a million records by ten consumers; ARGS="--rows light --turns 1"
	@tools/setup.sh bench
	$(PYTHON_IN_VENV) -m bench.share_groups $(ARGS)

bench-archive: ## a topic through `ottla spark archive` while job, broker and worker are killed; ARGS="--records 200000"
	@tools/setup.sh bench
	@tools/fetch_jars.sh spark
	$(PYTHON_IN_VENV) -m bench.spark_archive $(ARGS)

setup-all: ## build what every lane of `make test-all` needs
	@for step in test kafka go js rust kafka-python-2 kcat browser zsh spark-newest release; do tools/setup.sh $$step || exit; done

compat-oracle: setup-all ## run compat_tests on Ottla and Apache Kafka and write docs/compatibility.md; ARGS="kafka --client kcat" for a part
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" tools/compat_oracle.sh $(ARGS)

compat-spark: ## the tests of Spark, oldest and newest, on Ottla and Apache Kafka; writes docs/spark-versions.md
	@tools/setup.sh kafka
	@tools/setup.sh spark-newest
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" tools/compat_spark.sh $(ARGS)

release: ## wheel, sdist, SBOM and checksums of this version in dist/, each of them checked; nothing is uploaded
	@tools/setup.sh release
	@.venv-release/bin/python tools/release.py $(ARGS)

platforms: ## asks the package index where pip needs no compiler; writes the table in docs/index.md
	@tools/setup.sh test
	$(PYTHON_IN_VENV) tools/platforms.py docs/index.md

screenshots: ## pictures of each page of the console, in docs/console and docs/console.md
	@tools/setup.sh test
	@tools/setup.sh browser
	$(PYTHON_IN_VENV) -m ottla.tests.console.helpers.screenshots

docs: ## the documentation as a site in site/, after writing what is generated in docs/ anew; a warning is an error
	@tools/setup.sh docs
	$(PYTHON_IN_VENV) -m ottla.broker.settings_page > docs/configuration.md
	$(PYTHON_IN_VENV) -m ottla.broker.metrics.page docs/metrics.md
	$(PYTHON_IN_VENV) -m ottla.cli.help_page > docs/command-reference.md
	$(PYTHON_IN_VENV) tools/api_page.py > docs/api.md
	$(PYTHON_IN_VENV) -m bench.plot
	$(PYTHON_IN_VENV) -m bench.page
	$(PYTHON_IN_VENV) -m mkdocs build --strict

clean: ## remove what make built; ./data stays
	rm -rf $(VENV) .venv-kafka-python-2 .venv-spark-newest .venv-pypy .venv-broker-python .venv-release .jars .clients build dist site *.egg-info

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9.-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile
