"""The console's other source: any Kafka, asked by requests as a client asks them."""
