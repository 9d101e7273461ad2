"""The kinds of groups that a group id may be of, and what is known of each of them.

Each has ``group_id``, ``type_name``, ``protocol_type`` and ``state_name`` as ListGroups tells them, ``protocol_name``
for its assignor, ``epoch``, ``is_empty``, ``member_count`` and ``is_subscribed_to``.
"""

from __future__ import annotations

from .classic_group import ClassicGroup
from .consumer_group import ConsumerGroup
from .share_group import ShareGroup
from .streams_group import StreamsGroup

Group = ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup
