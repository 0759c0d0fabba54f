"""What is submitted for an image in place of a script."""
