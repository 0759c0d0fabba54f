"""Images of environments: recipes, requirements of builds, inventories, and use."""
