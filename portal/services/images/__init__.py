"""Building, testing, listing and removing images."""
