"""Programs for batch jobs in their containers."""
