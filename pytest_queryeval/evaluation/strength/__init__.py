"""How strong a case is: which wrong variants of its gold its source's data cannot tell from gold."""
