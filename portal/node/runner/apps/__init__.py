"""The apps in the job: their processes, and whether they answer and compute."""
