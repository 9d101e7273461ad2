"""DescribeInside (key 32000): what only an Ottla broker itself knows, for the console of another one. Not Kafka's.

A row is JSON in UTF-8: an object of the fields of the row's class by their names, so that a field may be added without another
version; what is not known is passed over.
"""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, int32, int64, request, response, string


@request(key=ApiKey.DESCRIBE_INSIDE, versions="0", flexible="0+")
class DescribeInsideRequest(Message):
    kind: string = field()
    """The rows that are asked for (``view.own.told_rows``)."""
    name: string = field(default="")
    """The topic or the group that they are about."""
    number: int64 = field(default=-1)
    """The partition, or the number of a request."""
    offset: int64 = field(default=-1)
    """Where batches begin."""
    proof: bytes = field(default=b"")
    """The answer to the ``challenge`` of a broker that knows who asks by nothing else."""


@response(key=ApiKey.DESCRIBE_INSIDE, versions="0", flexible="0+")
class DescribeInsideResponse(Message):
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    challenge: bytes = field(default=b"")
    """With an error: who has the cluster's secret may ask once more, on the same connection, with the proof of that."""
    total: int32 = field()
    """The number of rows that there are."""
    rows: list[bytes] = field()
