"""The share of a GPU as the session sees it."""
