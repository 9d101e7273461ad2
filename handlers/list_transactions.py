"""ListTransactions (key 66): the transactional ids this broker coordinates (KIP-664).

Behaviour: filters narrow down; states that do not exist are named in the response. COORDINATOR_LOAD_IN_PROGRESS while some
ids are not known yet. Those that the client may not describe are left out.

Version notes: 0 is flexible; 1 filters by how long the transaction runs (KIP-994); 2 by a pattern that the whole
transactional id has to match (KIP-1152), INVALID_REGULAR_EXPRESSION when it cannot be read.

Differences from Kafka: patterns have the part of RE2's syntax that ``transaction_coordinator.id_pattern`` describes, and at most
256 characters, repeats written out.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import Operation
from ..wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from .call import Call
from .rights import TRANSACTIONAL_ID, may


async def handle(call: Call, request: ListTransactionsRequest) -> ListTransactionsResponse:
    def may_describe(transactional_id: str) -> bool:
        return may(call, Operation.DESCRIBE, TRANSACTIONAL_ID, transactional_id, log_if_denied=False)

    return await call.broker.transactions.list_transactions(request, may_describe, call.flush)


def error_response(request: ListTransactionsRequest, error: KafkaError) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error.code)
