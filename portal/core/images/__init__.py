"""Images of environments: recipes, what a build needs, inventories, and who uses what."""
