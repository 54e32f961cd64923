"""Causes of wrong SPARQL answers: what leads from a predicted query to gold."""
