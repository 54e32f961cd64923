"""Cypher for pytest-queryeval: the kind `cypher` and the engine `ladybug`."""
