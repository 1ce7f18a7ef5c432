"""One kit for pictures and one set of templates for pages: it knows nothing of streams."""
