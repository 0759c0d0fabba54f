"""Tests on a cluster with two portal hosts (`make test-hosts`)."""
