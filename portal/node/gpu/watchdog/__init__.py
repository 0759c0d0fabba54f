"""The watchdog of the GPUs on a node: measures, records and enforces what jobs use."""
