"""What the runner mounts before the apps start."""
