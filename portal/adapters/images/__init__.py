"""Apptainer, base systems, and the site's folder of images."""
