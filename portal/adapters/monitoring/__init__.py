"""Metrics for Prometheus and their sources."""
