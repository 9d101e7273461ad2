"""Tools for who may do what, and how much: access rules, users, quotas, certificates."""
