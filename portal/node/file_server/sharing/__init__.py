"""Shares of storage folders: listing, changes, comparison with the portal's list."""
