"""Plans for a balanced cluster: the placement of replicas and leaders, computed without I/O, event loop or clock.

``ClusterModel`` is what is known of a cluster, ``find_plan`` makes a ``BalancePlan`` of it by ordered goals, and ``steps_of``
puts the plan into steps that can be done one after the other. What Cruise Control calls goals and balancing actions are these,
too.
"""
