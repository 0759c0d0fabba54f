"""What the database tells of the portal, and what its failures mean."""
