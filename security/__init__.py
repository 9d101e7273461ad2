"""Who a client is, and what it may do: rules without I/O, on bytes, text and numbers that are given to them."""
