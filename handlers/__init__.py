"""One module per API: a request comes in, calls go to the layers below, a response goes out.

``table.HANDLERS`` is the one list that both dispatch and ApiVersions of a broker read; ``controller`` has that of controllers.
The module of an API has its name in lower case and holds ``async def handle(call, request) -> response`` and
``def error_response(request, error) -> response``, the answer when the request fails as a whole.
"""
