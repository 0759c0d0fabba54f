"""The watchdog of the GPUs on a node: it measures, records and limits the jobs' use."""
