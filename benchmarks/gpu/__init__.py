"""Parts of the measurements of training on a GPU."""
