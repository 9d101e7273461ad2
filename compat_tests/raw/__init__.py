"""Behaviour on the wire that clients rely on and reimplementations get wrong."""
