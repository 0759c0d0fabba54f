"""Archives of folders, created while they are sent."""
