"""A table of the broker properties that are dynamic in Kafka but unused in Ottla.

They are ``DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS`` of Kafka 4.3 (3.9 has no others) without passwords and without those that
take effect in Ottla as they are named here. Those of security hold for one broker or listener, so Kafka does not take them for
all brokers at once; with a listener's prefix many of them do take effect.
"""

from __future__ import annotations

from ...base.settings import ConfigValueType, Setting


def _unused(
    name: str, kind: ConfigValueType, at_least: float | None, choices: tuple[str, ...] | None = None
) -> Setting:
    default = _LIST_DEFAULTS.get(name, ()) if kind is ConfigValueType.LIST else None
    doc = "Kept, but of no use to Ottla."
    return Setting(name, None, default, kind, at_least, None, choices, None, (), doc, dynamic=True)


_LIST_DEFAULTS = {
    "metric.reporters": ("org.apache.kafka.common.metrics.JmxReporter",),
    "sasl.enabled.mechanisms": ("GSSAPI",),
    "sasl.kerberos.principal.to.local.rules": ("DEFAULT",),
    "ssl.enabled.protocols": ("TLSv1.2", "TLSv1.3"),
}

_FOR_ALL_BROKERS = [
    _unused("background.threads", ConfigValueType.INT, 1),
    _unused("config.providers", ConfigValueType.LIST, None),
    _unused("follower.fetch.last.tiered.offset.enable", ConfigValueType.BOOLEAN, None),
    _unused("group.coordinator.cached.buffer.max.bytes", ConfigValueType.INT, 512 * 1024),
    _unused("group.share.assignment.interval.ms", ConfigValueType.INT, 0),
    _unused("group.streams.assignment.interval.ms", ConfigValueType.INT, 0),
    _unused("max.connection.creation.rate", ConfigValueType.INT, 0),
    _unused("metric.reporters", ConfigValueType.LIST, None),
    _unused("num.io.threads", ConfigValueType.INT, 1),
    _unused("num.network.threads", ConfigValueType.INT, 1),
    _unused("remote.fetch.max.wait.ms", ConfigValueType.INT, 1),
    _unused("remote.list.offsets.request.timeout.ms", ConfigValueType.LONG, 1),
    _unused("remote.log.index.file.cache.total.size.bytes", ConfigValueType.LONG, 1),
    _unused("remote.log.manager.copier.thread.pool.size", ConfigValueType.INT, 1),
    _unused("remote.log.manager.copy.max.bytes.per.second", ConfigValueType.LONG, 1),
    _unused("remote.log.manager.expiration.thread.pool.size", ConfigValueType.INT, 1),
    _unused("remote.log.manager.fetch.max.bytes.per.second", ConfigValueType.LONG, 1),
    _unused("remote.log.manager.follower.thread.pool.size", ConfigValueType.INT, 1),
    _unused("remote.log.reader.threads", ConfigValueType.INT, 1),
    _unused("share.coordinator.cached.buffer.max.bytes", ConfigValueType.INT, 512 * 1024),
]

_FOR_ONE_BROKER = [
    _unused("cordoned.log.dirs", ConfigValueType.LIST, None),
    _unused("principal.builder.class", ConfigValueType.CLASS, None),
    _unused("sasl.enabled.mechanisms", ConfigValueType.LIST, None),
    _unused("sasl.kerberos.kinit.cmd", ConfigValueType.STRING, None),
    _unused("sasl.kerberos.min.time.before.relogin", ConfigValueType.LONG, None),
    _unused("sasl.kerberos.principal.to.local.rules", ConfigValueType.LIST, None),
    _unused("sasl.kerberos.service.name", ConfigValueType.STRING, None),
    _unused("sasl.kerberos.ticket.renew.jitter", ConfigValueType.DOUBLE, None),
    _unused("sasl.kerberos.ticket.renew.window.factor", ConfigValueType.DOUBLE, None),
    _unused("sasl.login.refresh.buffer.seconds", ConfigValueType.SHORT, None),
    _unused("sasl.login.refresh.min.period.seconds", ConfigValueType.SHORT, None),
    _unused("sasl.login.refresh.window.factor", ConfigValueType.DOUBLE, None),
    _unused("sasl.login.refresh.window.jitter", ConfigValueType.DOUBLE, None),
    _unused("sasl.mechanism.inter.broker.protocol", ConfigValueType.STRING, None),
    _unused("ssl.cipher.suites", ConfigValueType.LIST, None),
    _unused("ssl.client.auth", ConfigValueType.STRING, None, ("required", "requested", "none")),
    _unused("ssl.enabled.protocols", ConfigValueType.LIST, None),
    _unused("ssl.endpoint.identification.algorithm", ConfigValueType.STRING, None),
    _unused("ssl.engine.factory.class", ConfigValueType.CLASS, None),
    _unused("ssl.keymanager.algorithm", ConfigValueType.STRING, None),
    _unused("ssl.keystore.location", ConfigValueType.STRING, None),
    _unused("ssl.keystore.type", ConfigValueType.STRING, None),
    _unused("ssl.protocol", ConfigValueType.STRING, None),
    _unused("ssl.provider", ConfigValueType.STRING, None),
    _unused("ssl.secure.random.implementation", ConfigValueType.STRING, None),
    _unused("ssl.trustmanager.algorithm", ConfigValueType.STRING, None),
    _unused("ssl.truststore.location", ConfigValueType.STRING, None),
    _unused("ssl.truststore.type", ConfigValueType.STRING, None),
]

UNUSED = {declared.name: declared for declared in (*_FOR_ALL_BROKERS, *_FOR_ONE_BROKER) if declared.name is not None}
"""Name -> its declaration."""

UNUSED_FOR_ONE_BROKER = {declared.name for declared in _FOR_ONE_BROKER}
"""Those of them that are refused for all brokers at once."""
