"""DescribeConfigs (key 32): the settings of this controller, and those of topics, brokers and all brokers as the log has them.

Behaviour: as a broker's, whose module has it. The node that may be named is this controller (KIP-919).
"""

from __future__ import annotations

from ..describe_configs import described as handle
from ..describe_configs import error_response

__all__ = ("error_response", "handle")
