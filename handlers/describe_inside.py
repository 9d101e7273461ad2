"""DescribeInside (key 32000): rows of what only this broker knows, for the console of another Ottla broker. Not Kafka's.

Behaviour: served over the inter-broker listener only, to who has CLUSTER_ACTION on the cluster, as brokers have; where there is
no authorizer, to whom ``view.own.told_access`` takes for a broker. What a visitor may see is decided by the console that asks.
A broker without a console keeps no rows, and answers UNSUPPORTED_VERSION.

Nobody is told of it by ApiVersions but who calls its software ``ASKING_SOFTWARE`` there, which needs version 3. So no client
and no broker of Apache Kafka ever sees the key, and one of Kafka, which does not name it, is never asked by it. It is a request
between brokers, not HTTP between consoles: brokers know each other's addresses, and how to prove who they are, already.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.describe_inside import DescribeInsideRequest, DescribeInsideResponse
from .call import Call
from .table import plain_error as error_response

__all__ = ["error_response", "handle"]


async def handle(call: Call, request: DescribeInsideRequest) -> DescribeInsideResponse:
    if not call.connection.is_inter_broker_listener:
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "it reports to brokers only, over their own listener")
    inside = call.broker.inside
    if inside is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "it has no console (console.listener)")
    return await inside(call.connection, request)
