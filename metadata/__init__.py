"""What a cluster consists of, whoever keeps it: values without a protocol, a store or a loop."""
