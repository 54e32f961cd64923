"""Work in chunks on an executor: what is sent to workers, how it is done there, and what happens when one dies."""
