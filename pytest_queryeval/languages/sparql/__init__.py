"""SPARQL: the outline of a query, from its tokens, its answers and their terms."""
