"""What the parser of SQL tells about a query."""
