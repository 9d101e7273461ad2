"""HTTP/1.1 for the broker's own pages: a small server that runs an ASGI application on the broker's loop."""
