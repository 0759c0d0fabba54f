"""Which accounts, QOS, reservations, features and partitions a person may combine."""
