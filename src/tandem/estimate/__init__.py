"""What training takes before it is tried: parameters, operations and memory, by arithmetic alone."""
