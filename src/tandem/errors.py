"""The one exception that users see: a sentence that says what, where and the cure."""

__all__ = ["TandemError"]


class TandemError(Exception):
    """Bad input or a bad environment. The message is one sentence: what is wrong, where, and how to mend it."""
