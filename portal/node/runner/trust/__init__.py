"""Session and portal know each other again: after a change of authorities, or a lost database."""
