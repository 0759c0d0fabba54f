"""How users log in, besides the login node's password."""
