"""SPARQL queries as trees that can be changed and written: what wrong variants and causes are made from."""
