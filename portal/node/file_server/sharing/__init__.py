"""Storage folders that are shared with other users: who has access, changes and comparison."""
