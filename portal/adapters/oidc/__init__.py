"""The client of an OpenID provider: discovery, keys, codes and tokens."""
