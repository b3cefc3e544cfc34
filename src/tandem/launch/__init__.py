"""Starting ranks and keeping them running."""
