"""Suite files as trees of nodes that know their place."""
