"""The pure parts of the oracle (tests/oracle)."""
