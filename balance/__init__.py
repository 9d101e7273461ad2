"""Plans for a balanced cluster: which replicas are to be on which brokers, and who is to lead. Pure: no I/O, no loop, no clock.

``Cluster`` is what is known of a cluster, ``find_plan`` makes a ``Plan`` of it by ordered goals, and ``steps_of`` puts the
plan into steps that can be done one after the other. What Cruise Control calls goals and balancing actions are these, too.
"""
