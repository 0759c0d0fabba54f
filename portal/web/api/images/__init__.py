"""The contents of the environments' images."""
