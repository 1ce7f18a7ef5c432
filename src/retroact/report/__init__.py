"""A kit for pages and pictures, for whoever shows results: it knows nothing of streams."""
