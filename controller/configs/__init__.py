"""Configs that can be set while brokers run: which names and values topics, brokers, groups and subscriptions may have."""
