"""How a request is refused: a status and one sentence."""

from collections.abc import Mapping

__all__ = ["Refusal"]


class Refusal(Exception):  # noqa: N818  (an answer rather than an error of ours)
    """The request is answered with this status and sentence."""

    def __init__(self, status: int, sentence: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers or {}
