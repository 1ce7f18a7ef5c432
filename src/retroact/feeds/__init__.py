"""Change feeds in: files, standard input and frames become additions, deletions and rounds of a stream."""
