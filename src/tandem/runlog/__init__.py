"""The wall between makers and readers: facts about a run, appended as JSON lines."""
