"""Tests of wire behaviour that clients rely on and reimplementations get wrong."""
