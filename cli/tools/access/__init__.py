"""Tools for access control: ACLs, users, quotas, certificates."""
