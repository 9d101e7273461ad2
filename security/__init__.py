"""Who a client is, and what it may do: rules without I/O, on the bytes, texts and numbers that they are given."""
