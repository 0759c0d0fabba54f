"""Archives of folders, which are made while they are sent."""
