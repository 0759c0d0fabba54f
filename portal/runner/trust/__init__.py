"""Whom the session trusts, when the portal changes its authorities."""
