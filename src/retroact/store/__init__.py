"""Durable storage: surviving data in blocks, the inbox of the open round, the journal of releases, and the fence."""
