"""Trust between session and portal after a change of CAs, or after the loss of the database."""
