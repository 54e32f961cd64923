"""SPARQL queries as trees that can be changed and written, from which mutants and causes are made."""
