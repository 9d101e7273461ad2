"""The lag job: the lag of each consumer group, and its status by Burrow's rules.

It reads ``__consumer_offsets``, so the consumers need not be changed, and it has the last commits of each partition from
its first look on. The lag of a group at a commit is calculated from the end of the partition at that time: the first
offset whose timestamp is not before the commit's. So timestamps should be about the times when records were written.

``rules`` has the rules, ``commits`` reads the topic, ``job`` combines them.
"""
