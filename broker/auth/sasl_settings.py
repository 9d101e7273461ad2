"""Settings of SASL (mechanisms, identities, limits), each optionally with the prefix of a listener and of a mechanism."""

from __future__ import annotations

from ...base.settings import ConfigValueType, Settings, setting

DEFAULT_MECHANISM = "GSSAPI"


class SaslSettings(Settings):
    """As they are for one listener, or for one mechanism of it (``ListenerConfig.settings``)."""

    enabled_mechanisms: tuple[str, ...] = setting(
        "sasl.enabled.mechanisms",
        default=(DEFAULT_MECHANISM,),
        doc="The mechanisms that a SASL listener takes: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. Kafka's default, "
        "GSSAPI, is not served, so a SASL listener needs this setting.",
    )
    inter_broker_mechanism: str | None = setting(
        "sasl.mechanism.inter.broker.protocol",
        default=None,
        doc="The mechanism by which this broker authenticates at other brokers, one of those enabled; if not given, the first of "
        "them (Kafka's default is GSSAPI, which is not served).",
    )
    controller_mechanism: str | None = setting(
        "sasl.mechanism.controller.protocol",
        default=None,
        doc="The same for the controllers of a cluster of KRaft; SCRAM cannot guard their listener.",
    )
    jaas_config: str | None = setting(
        "sasl.jaas.config",
        kind=ConfigValueType.PASSWORD,
        default=None,
        doc="Login module and options of one mechanism, read with the prefix listener.name.NAME.MECHANISM. only: username and "
        "password are this broker's own at other brokers, each user_NAME=PASSWORD is a user of PLAIN. There is no JAAS file.",
    )
    server_max_receive_size: int = setting(
        "sasl.server.max.receive.size",
        default=524288,
        at_least=0,
        doc="The largest frame that is taken from a client before it is authenticated, in bytes.",
    )
    connections_max_reauth_ms: int = setting(
        "connections.max.reauth.ms",
        kind=ConfigValueType.LONG,
        default=0,
        doc="After how long a client has to authenticate again (KIP-368), or is disconnected; 0 for never.",
    )
