"""What operations do with one item: copy, move, delete, or change permissions."""
