"""Retroact."""
