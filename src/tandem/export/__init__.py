"""Models in the forms that other tools read, each checked against the model that it was made from."""
