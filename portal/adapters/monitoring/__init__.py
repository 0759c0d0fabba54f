"""Metrics for Prometheus, and what they are read from."""
