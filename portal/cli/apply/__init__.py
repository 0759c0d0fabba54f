"""`slipway apply`: takes changed settings, or another release, into service."""
