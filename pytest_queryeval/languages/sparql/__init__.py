"""SPARQL as text: what a query is and asks for, told from its tokens; the terms that answers hold."""
