"""ListTransactions (key 66): the transactional ids this broker coordinates (KIP-664).

Behaviour: filters narrow down; states that do not exist are named in the answer. COORDINATOR_LOAD_IN_PROGRESS while some
ids are not known yet.

Version notes: 0 is flexible; 1 filters by how long the transaction runs (KIP-994); 2 by a pattern that the whole
transactional id has to match (KIP-1152), INVALID_REGULAR_EXPRESSION when it cannot be read.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from .call import Call


async def handle(call: Call, request: ListTransactionsRequest) -> ListTransactionsResponse:
    return await call.broker.transactions.list_transactions(request, call.flush)


def error_response(request: ListTransactionsRequest, error: KafkaError) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error.code)
