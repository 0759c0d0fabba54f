"""Checks of all that a session needs on its node, for `slipway check --session`."""
