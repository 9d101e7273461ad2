"""What every layer may use: settings, errors, addresses, and the interfaces to clock, network and threads. No layer is below."""
