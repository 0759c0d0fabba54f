"""What is inside the images of environments."""
