"""`retroact demo`: see it at work on a made-up shop."""
