"""DescribeTransactions (key 65): the state of transactions by transactional id (KIP-664).

Behaviour: each id succeeds or fails by itself; an unknown one is TRANSACTIONAL_ID_NOT_FOUND. Topics that the client may not
describe are left out.

Version notes: 0 is the only one, and flexible.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import Operation
from ..wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from .call import Call
from .rights import TOPIC, TRANSACTIONAL_ID, allowed_names, check


async def handle(call: Call, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    states = []
    for transactional_id in request.transactional_ids:
        try:
            check(call, Operation.DESCRIBE, TRANSACTIONAL_ID, transactional_id)
            state = await call.broker.transactions.describe(transactional_id, call.flush)
            names = [topic.topic for topic in state.topics]
            visible = allowed_names(call, Operation.DESCRIBE, TOPIC, names, log_if_denied=False)
            state.topics = [topic for topic in state.topics if topic.topic in visible]
            states.append(state)
        except KafkaError as error:
            states.append(_failed(transactional_id, error))
    return DescribeTransactionsResponse(transaction_states=states)


def _failed(transactional_id: str, error: KafkaError) -> TransactionState:
    return TransactionState(error_code=error.code, transactional_id=transactional_id)


def error_response(request: DescribeTransactionsRequest, error: KafkaError) -> DescribeTransactionsResponse:
    return DescribeTransactionsResponse(
        transaction_states=[_failed(transactional_id, error) for transactional_id in request.transactional_ids]
    )
