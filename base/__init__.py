"""The bottom layer, which all others may import: settings, errors, addresses, interfaces to clock, network and threads."""
