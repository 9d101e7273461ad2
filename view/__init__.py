"""The read model of a broker and of a cluster, as rows, for the console, ``ottla top``, metrics and tests.

``own`` reads the objects of a running broker on its loop; ``remote`` sends requests to any Kafka, as a client does;
``whole_cluster`` joins both. ``source`` is the interface of all three. What they share stands here: rows, searches of records,
lag. Nothing here changes anything. Work on the loop is done in slices (``pace``), and what several pages ask for at once is read
once (``cached``).
"""
