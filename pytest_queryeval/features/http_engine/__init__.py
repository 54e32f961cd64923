"""Services that answer SQL in JSON over HTTP."""
