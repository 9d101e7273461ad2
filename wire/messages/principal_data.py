"""A client's principal as a broker tells it the controller in an Envelope (KIP-590); it follows an int16, its version."""

from ..schema import Message, field, message, string


@message(versions="0", flexible="0+")
class DefaultPrincipalData(Message):
    type: string = field()
    name: string = field()
    token_authenticated: bool = field()
