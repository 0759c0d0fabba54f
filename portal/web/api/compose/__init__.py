"""Submitting jobs, and job templates, over the REST API."""
