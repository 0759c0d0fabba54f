"""Tries a session's whole way on its node, for `slipway check --session`, without a session."""
