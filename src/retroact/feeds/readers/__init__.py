"""What reads a source: lines of JSON, CSV, or columns."""
