"""One kit for pictures and one set of templates for pages. It does not know about streams."""
