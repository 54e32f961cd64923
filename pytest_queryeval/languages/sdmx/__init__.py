"""SDMX data queries: selections of terms, what they share, and the structures that say which terms there are."""
