"""SDMX data queries: selections of terms, their comparison, and the structures that define the terms."""
