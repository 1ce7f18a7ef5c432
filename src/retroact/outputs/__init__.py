"""Published releases as tables, frames, charts and pages. It sees releases and public choices, and no record."""
