"""Database servers: the check that a text only reads, their values, and the definitions of their tables."""
