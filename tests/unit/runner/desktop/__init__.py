"""Tests of portal/runner/desktop."""
