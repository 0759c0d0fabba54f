"""Commands for the state directory: rotate, backup and restore."""
