"""The combinations of accounts, QOS, reservations, features and partitions open to a person."""
