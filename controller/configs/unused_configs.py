"""A table of the broker properties that are dynamic in Kafka but unused in Ottla.

They are ``DynamicBrokerConfig.ALL_DYNAMIC_CONFIGS`` of Kafka 4.3 (3.9 has no others) without passwords and without those that
take effect in Ottla as they are named here. Those of security hold for one broker or listener, so Kafka does not take them for
all brokers at once; with a listener's prefix many of them do take effect.
"""

from __future__ import annotations

from ...base.settings import Kind, Setting


def _unused(name: str, kind: Kind, at_least: float | None, choices: tuple[str, ...] | None = None) -> Setting:
    default = _LIST_DEFAULTS.get(name, ()) if kind is Kind.LIST else None
    doc = "Kept, but of no use to Ottla."
    return Setting(name, None, default, kind, at_least, None, choices, None, (), doc, dynamic=True)


_LIST_DEFAULTS = {
    "metric.reporters": ("org.apache.kafka.common.metrics.JmxReporter",),
    "sasl.enabled.mechanisms": ("GSSAPI",),
    "sasl.kerberos.principal.to.local.rules": ("DEFAULT",),
    "ssl.enabled.protocols": ("TLSv1.2", "TLSv1.3"),
}

_FOR_ALL_BROKERS = [
    _unused("background.threads", Kind.INT, 1),
    _unused("config.providers", Kind.LIST, None),
    _unused("follower.fetch.last.tiered.offset.enable", Kind.BOOLEAN, None),
    _unused("group.consumer.assignment.interval.ms", Kind.INT, 0),
    _unused("group.coordinator.cached.buffer.max.bytes", Kind.INT, 512 * 1024),
    _unused("group.share.assignment.interval.ms", Kind.INT, 0),
    _unused("group.streams.assignment.interval.ms", Kind.INT, 0),
    _unused("max.connection.creation.rate", Kind.INT, 0),
    _unused("metric.reporters", Kind.LIST, None),
    _unused("num.io.threads", Kind.INT, 1),
    _unused("num.network.threads", Kind.INT, 1),
    _unused("remote.fetch.max.wait.ms", Kind.INT, 1),
    _unused("remote.list.offsets.request.timeout.ms", Kind.LONG, 1),
    _unused("remote.log.index.file.cache.total.size.bytes", Kind.LONG, 1),
    _unused("remote.log.manager.copier.thread.pool.size", Kind.INT, 1),
    _unused("remote.log.manager.copy.max.bytes.per.second", Kind.LONG, 1),
    _unused("remote.log.manager.expiration.thread.pool.size", Kind.INT, 1),
    _unused("remote.log.manager.fetch.max.bytes.per.second", Kind.LONG, 1),
    _unused("remote.log.manager.follower.thread.pool.size", Kind.INT, 1),
    _unused("remote.log.reader.threads", Kind.INT, 1),
    _unused("share.coordinator.cached.buffer.max.bytes", Kind.INT, 512 * 1024),
]

_FOR_ONE_BROKER = [
    _unused("cordoned.log.dirs", Kind.LIST, None),
    _unused("principal.builder.class", Kind.CLASS, None),
    _unused("sasl.enabled.mechanisms", Kind.LIST, None),
    _unused("sasl.kerberos.kinit.cmd", Kind.STRING, None),
    _unused("sasl.kerberos.min.time.before.relogin", Kind.LONG, None),
    _unused("sasl.kerberos.principal.to.local.rules", Kind.LIST, None),
    _unused("sasl.kerberos.service.name", Kind.STRING, None),
    _unused("sasl.kerberos.ticket.renew.jitter", Kind.DOUBLE, None),
    _unused("sasl.kerberos.ticket.renew.window.factor", Kind.DOUBLE, None),
    _unused("sasl.login.refresh.buffer.seconds", Kind.SHORT, None),
    _unused("sasl.login.refresh.min.period.seconds", Kind.SHORT, None),
    _unused("sasl.login.refresh.window.factor", Kind.DOUBLE, None),
    _unused("sasl.login.refresh.window.jitter", Kind.DOUBLE, None),
    _unused("sasl.mechanism.inter.broker.protocol", Kind.STRING, None),
    _unused("ssl.cipher.suites", Kind.LIST, None),
    _unused("ssl.client.auth", Kind.STRING, None, ("required", "requested", "none")),
    _unused("ssl.enabled.protocols", Kind.LIST, None),
    _unused("ssl.endpoint.identification.algorithm", Kind.STRING, None),
    _unused("ssl.engine.factory.class", Kind.CLASS, None),
    _unused("ssl.keymanager.algorithm", Kind.STRING, None),
    _unused("ssl.keystore.location", Kind.STRING, None),
    _unused("ssl.keystore.type", Kind.STRING, None),
    _unused("ssl.protocol", Kind.STRING, None),
    _unused("ssl.provider", Kind.STRING, None),
    _unused("ssl.secure.random.implementation", Kind.STRING, None),
    _unused("ssl.trustmanager.algorithm", Kind.STRING, None),
    _unused("ssl.truststore.location", Kind.STRING, None),
    _unused("ssl.truststore.type", Kind.STRING, None),
]

UNUSED = {declared.name: declared for declared in (*_FOR_ALL_BROKERS, *_FOR_ONE_BROKER) if declared.name is not None}
"""Name -> its declaration."""

UNUSED_FOR_ONE_BROKER = {declared.name for declared in _FOR_ONE_BROKER}
"""Those of them that are refused for all brokers at once."""
