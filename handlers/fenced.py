"""PRODUCER_FENCED as INVALID_PRODUCER_EPOCH, for clients that are too old to know it."""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError


def downgrade_fenced(error: KafkaError, knows_fenced: bool) -> KafkaError:
    """``error``, under its older name INVALID_PRODUCER_EPOCH where the client's version does not have the newer."""
    if error.code is ErrorCode.PRODUCER_FENCED and not knows_fenced:
        return KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, error.message)
    return error
