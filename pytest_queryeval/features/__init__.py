"""What the life of a case does not need: each folder is a feature, and registers itself by entry points.

The rest of the package imports no feature, and a feature imports no other one.
"""
