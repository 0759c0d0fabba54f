"""Formats that the portal and the programs on other machines share."""
