"""Validation and effects of dynamic configs: those of topics, brokers, groups and client metrics subscriptions."""
