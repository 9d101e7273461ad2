"""CreateAcls (key 30): add access rules; one result for each. See ``acls``.

Behaviour: any broker writes them. One that exists already is a success. Whether an operation makes sense for a resource is not
checked, as in Kafka. A rule with ANY or MATCH in it, or a principal without a type, is INVALID_REQUEST (Kafka answers all rules
of the request with UNKNOWN_SERVER_ERROR then).

Version notes: 1 adds the pattern type, 2 is flexible, 3 adds user resources.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import AclBinding
from ..wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from .acls import check_is_secured, requested_binding
from .call import Call


async def handle(call: Call, request: CreateAclsRequest) -> CreateAclsResponse:
    refused: dict[int, KafkaError] = {}
    wanted: dict[int, AclBinding] = {}
    for number, creation in enumerate(request.creations):
        try:
            wanted[number] = requested_binding(creation)
        except KafkaError as error:
            refused[number] = error
    outcome: dict[int, KafkaError | None] = dict(refused)
    if wanted:
        check_is_secured(call)
        await call.flush()
        outcome |= zip(wanted, await call.broker.commands.create_acls(list(wanted.values())), strict=True)
    return CreateAclsResponse(results=[_result(outcome[number]) for number in range(len(request.creations))])


def _result(error: KafkaError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult()
    return AclCreationResult(error_code=error.code, error_message=error.message)


def error_response(request: CreateAclsRequest, error: KafkaError) -> CreateAclsResponse:
    return CreateAclsResponse(results=[_result(error) for _ in request.creations])
