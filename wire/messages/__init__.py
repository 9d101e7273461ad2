"""The messages of Kafka's protocol, one file per API with its request and its response.

Each covers every version of Kafka 3.9 and of Kafka 4.4, under Kafka 4's names; each docstring says what the versions
added; the decorator says which versions are flexible. Structs have Kafka's names and stand before the message they are
part of; a request and a response that share a struct of the same shape share the class.
"""
