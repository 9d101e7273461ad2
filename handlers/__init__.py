"""Request handlers, one module per API: each calls the layers below and returns a response.

``table.HANDLERS`` is the one list that both dispatch and ApiVersions of a broker read; ``controller`` has that of controllers.
The module of an API has its name in lower case and holds ``async def handle(call, request) -> response`` and
``def error_response(request, error) -> response``, the response when the request fails as a whole.
"""
