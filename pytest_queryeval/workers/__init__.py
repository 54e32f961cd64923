"""Cases are evaluated without pytest: in this process, or in other ones."""
