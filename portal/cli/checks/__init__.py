"""The parts of `slipway check`, each about one thing that a site sets up."""
