"""What a running broker is like, as rows: one read model for the console, ``ottla top``, metrics and tests.

Nothing here changes anything, and nothing is kept for it on the way of a request but what an observer is told of. It is read
off the broker's own objects on its loop, in slices (``pace``), and what several pages ask for at once is read once (``cached``).
"""
