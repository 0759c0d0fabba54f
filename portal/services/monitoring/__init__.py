"""Whether the portal works, for programs that watch it."""
