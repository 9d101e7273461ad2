"""ListTransactions (key 66): the transactional ids this broker coordinates (KIP-664).

Behaviour: filters narrow down; states that do not exist are named in the answer. COORDINATOR_LOAD_IN_PROGRESS while some
ids are not known yet. Those that the client may not describe are left out.

Version notes: 0 is flexible; 1 filters by how long the transaction runs (KIP-994); 2 by a pattern that the whole
transactional id has to match (KIP-1152), INVALID_REGULAR_EXPRESSION when it cannot be read.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import Operation
from ..wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from .call import Call
from .rights import TRANSACTIONAL_ID, allowed_names


async def handle(call: Call, request: ListTransactionsRequest) -> ListTransactionsResponse:
    response = await call.broker.transactions.list_transactions(request, call.flush)
    names = [state.transactional_id for state in response.transaction_states]
    visible = allowed_names(call, Operation.DESCRIBE, TRANSACTIONAL_ID, names, log_if_denied=False)
    response.transaction_states = [state for state in response.transaction_states if state.transactional_id in visible]
    return response


def error_response(request: ListTransactionsRequest, error: KafkaError) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error.code)
