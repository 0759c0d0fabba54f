"""The kinds of operations on one item: copy, move, delete, change permissions."""
