"""Untrusted queries run in a child process, which is killed when it is late."""
