"""SPARQL endpoints, queried over HTTP."""
