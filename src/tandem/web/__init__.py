"""What both HTTP servers have in common: where they listen, whom they let in, how they refuse, what they endure."""

__all__: list[str] = []
