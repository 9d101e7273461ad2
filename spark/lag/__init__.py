"""The lag job: how far each consumer group is behind, and whether that is trouble, by Burrow's rules.

It reads ``__consumer_offsets``, so it needs nothing of the consumers, and knows the last commits of each partition from
its first look on. What a group lagged behind at a commit is worked out from the end of the partition at that time: the
first offset with a timestamp as late as the commit's. So timestamps should tell when records were written, about.

``rules`` judges, ``commits`` reads the topic, ``job`` puts them together.
"""
