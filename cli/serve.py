"""``ottla serve``: reads the configuration from options and files, and runs a broker until it is stopped.

Exit codes: 0 after a stop that was asked for, 1 when the broker failed, or had no ZooKeeper at its start, 2 when it could not
start with what it was given.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import signal
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from .. import __version__
from ..base.addresses import DEFAULT_PORT, join_host_port, split_host_port
from ..base.config import Config
from ..base.network import Network
from ..base.seams import Clock, Workers
from ..base.settings import SettingError
from ..base.system_calls import raise_descriptor_limit
from ..base.wording import how_to_install
from ..broker.config_file import load_config, parse_overrides, read_properties, warn_of_unused
from ..broker.formation_settings import FormationSettings
from ..broker.limits import warn_of_few_descriptors
from ..broker.listeners.open_listeners import warn_of_open_listeners
from ..broker.server import BrokerFailedError, BrokerServer, Side, StartError
from ..controller.quorum.settings import CONTROLLER_ROLE, QuorumSettings
from ..wire.api_keys import ApiKey
from .log_output import configure_logging
from .supervised import LABEL, stop_with_supervisor

if TYPE_CHECKING:
    from ..broker.controller_only import ControllerOnlyServer

logger = logging.getLogger(__name__)


def run(
    *,
    listen: str | None = None,
    advertise: str | None = None,
    data_dir: Path | None = None,
    config: Path | None = None,
    override: Iterable[str] = (),
    metrics: str | None = None,
    console: str | None = None,
    console_allow_writes: bool = False,
    zookeeper: str | None = None,
    node: int | None = None,
    cluster: str | None = None,
    cluster_secret_file: Path | None = None,
    log_level: str = "info",
    log_format: str = "text",
    trace: str | None = None,
) -> int:
    """Start a broker and serve until SIGTERM or SIGINT; the exit code."""
    try:
        configure_logging(log_level, log_format, os.environ.get(LABEL))
        traced = _parse_trace(trace) if trace else frozenset()
        configured = configure(
            listen,
            advertise,
            data_dir,
            config,
            override,
            metrics,
            zookeeper,
            console,
            console_allow_writes,
            node,
            cluster,
            cluster_secret_file,
        )
        warn_of_open_listeners(configured)
    except (SettingError, ValueError) as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"cannot read {config}: {error.strerror}")
    raise_descriptor_limit()
    warn_of_few_descriptors()
    try:
        trio.run(functools.partial(_serve, configured, traced), restrict_keyboard_interrupt_to_checkpoints=True)
    except StartError as error:
        code = _refuse(str(error))
        return 1 if error.may_pass else code
    except BrokerFailedError as error:
        print(f"ottla: the broker has stopped: {error}", file=sys.stderr)
        return 1
    except Exception:
        logger.exception("the broker failed")
        return 1
    return 0


def _parse_trace(text: str) -> frozenset[ApiKey]:
    from ..broker.listeners.request_log import parse_apis

    return parse_apis(text)


def configure(
    listen: str | None,
    advertise: str | None,
    data_dir: Path | None,
    config_file: Path | None,
    overrides: Iterable[str],
    metrics: str | None = None,
    zookeeper: str | None = None,
    console: str | None = None,
    console_allow_writes: bool = False,
    node: int | None = None,
    cluster: str | None = None,
    cluster_secret_file: Path | None = None,
) -> Config:
    """One configuration, the later of file, overrides and options winning. Raises SettingError, ValueError, OSError."""
    properties: dict[str, str] = {}
    if config_file is not None:
        properties = read_properties(config_file)
    overridden = parse_overrides(overrides)
    properties |= overridden
    warn_of_unused(properties)
    options: dict[str, str] = {}
    if node is not None:
        options["node.id"] = str(node)
    if cluster is not None:
        options["cluster.nodes"] = cluster
    if cluster_secret_file is not None:
        options["cluster.secret.file"] = str(cluster_secret_file)
    is_of_list = "cluster.nodes" in properties or "cluster.nodes" in options
    if listen is not None and not is_of_list:
        options["listeners"] = f"PLAINTEXT://{join_host_port(*split_host_port(listen, DEFAULT_PORT))}"
    if advertise is not None and not is_of_list:
        options["advertised.listeners"] = f"PLAINTEXT://{join_host_port(*split_host_port(advertise))}"
    if data_dir is not None:
        options["log.dirs"] = str(data_dir)
    if metrics is not None:
        options["metrics.listener"] = join_host_port(*split_host_port(metrics))
    if console is not None:
        options["console.listener"] = join_host_port(*split_host_port(console))
    if console_allow_writes:
        options["console.allow.writes"] = "true"
    if zookeeper is not None:
        options["zookeeper.connect"] = zookeeper
    for name in sorted(name for name in options.keys() & overridden.keys() if options[name] != overridden[name]):
        logger.warning(
            "--override %s=%s has no effect: the option for it says %s", name, overridden[name], options[name]
        )
    if is_of_list:
        from ..broker.formation.node_list import cluster_properties  # few nodes have a list

        return load_config(cluster_properties(properties | options, listen, advertise))
    if cluster_secret_file is not None:
        raise SettingError("cluster.secret.file", str(cluster_secret_file), "it is for nodes with --cluster")
    return load_config(properties | options)


async def _serve(config: Config, traced: Collection[ApiKey]) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            server = _make_server(config, traced)
            forming = trio.CancelScope()

            async def stop_on_signal() -> None:
                logger.info("stopping on %s", signal.Signals(await anext(signals)).name)
                forming.cancel()
                server.stop()
                # A person's; SIGTERM may come twice, from a service manager to all processes and from the parent of this one.
                async for number in signals:
                    if number == signal.SIGINT:
                        logger.info("stopping without handing over, on another SIGINT")
                        server.stop_without_handing_over()

            def stop_unsupervised() -> None:
                logger.error("stopping, because the supervisor of this machine's brokers has ended")
                forming.cancel()
                server.stop()

            nursery.start_soon(stop_on_signal)
            nursery.start_soon(stop_with_supervisor, stop_unsupervised)
            failure: StartError | BrokerFailedError | None = None
            try:
                with forming:
                    await _form(config)
                if not forming.cancelled_caught:
                    await server.serve(on_ready=lambda: _ready(server))
            except (StartError, BrokerFailedError) as error:
                failure = error
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _form(config: Config) -> None:
    """Wait until the node is part of the cluster that its list of nodes stands for. Raises StartError."""
    if config.settings(FormationSettings).nodes:
        from ..broker.cluster_formation import form_cluster  # few nodes have a list

        await form_cluster(config)


def _make_server(config: Config, traced: Collection[ApiKey]) -> BrokerServer | ControllerOnlyServer:
    if config.settings(QuorumSettings).process_roles == (CONTROLLER_ROLE,):
        from ..broker.controller_only import ControllerOnlyServer  # a broker needs none of it

        return ControllerOnlyServer(config, traced=traced)
    return BrokerServer(config, traced=traced, make_console=_make_console)


_SWITCH_SECONDS = 0.001
"""For how long a worker that computes keeps the loop waiting, each time; Python's own 0.005 add up within one request."""


def _make_console(server: BrokerServer, network: Network, clock: Clock, workers: Workers) -> Side:
    """The console, which is imported only where it is asked for. Raises StartError."""
    try:
        from ..console.broker_console import ConsoleSide
    except ImportError as error:
        raise StartError(f"the console needs {how_to_install('console')}: {error}") from None
    return ConsoleSide(server, network, clock, workers)


def _log_sides(server: BrokerServer | ControllerOnlyServer) -> None:
    if server.metrics_address is not None:
        logger.info("metrics are on http://%s/metrics", server.metrics_address)
    if isinstance(server, BrokerServer) and server.console_address is not None:
        logger.info("the console is on http://%s/", server.console_address)


def _ready(server: BrokerServer | ControllerOnlyServer) -> None:
    """Tell the world; and keep what the start made out of the garbage collector's way, for it stays to the end."""
    gc.collect()
    if hasattr(gc, "freeze"):  # PyPy has none: its collector looks at old objects seldom
        gc.freeze()
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.enable()
    _log_sides(server)
    # The first address stands bare, for scripts that take it from here.
    first = server.endpoints[0]
    places = ", ".join([join_host_port(first.host, first.port), *map(str, server.endpoints[1:])])
    folders = ", ".join(str(Path(path).absolute()) for path in server.data_dirs)
    print(
        f"Ottla {__version__} is ready on {places}, cluster {server.cluster_id}, data in {folders}",
        flush=True,
    )


def _refuse(message: str) -> int:
    print(f"ottla: {message}", file=sys.stderr)
    return 2
