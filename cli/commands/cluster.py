"""``ottla cluster …``: the subcommand and its options."""

from __future__ import annotations

from .options import (
    DEFAULT_SERVER,
    AsJson,
    BootstrapServer,
    CommandConfig,
    CommandProperty,
    Debug,
    group_app,
    run,
)

app = group_app("cluster", "Describe the cluster: brokers, controller, what is under-replicated.")


@app.command()
def describe(
    bootstrap_server: BootstrapServer = DEFAULT_SERVER,
    as_json: AsJson = False,
    command_config: CommandConfig = None,
    command_property: CommandProperty = None,
    debug: Debug = False,
) -> None:
    """Describe the cluster: its id, brokers and controller, and how its partitions are.

    \b
    Examples:
      ottla cluster describe
      ottla cluster describe --json | jq .offline_partitions
    """
    from ..tools import client, cluster

    connection = client.Connection.of(bootstrap_server, command_config, command_property)
    run(debug, cluster.describe, connection, as_json=as_json)
