"""Tests of portal/node/runner/desktop."""
