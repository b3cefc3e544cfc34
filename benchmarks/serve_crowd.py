"""Clients that come again where a full server refuses them, and what becomes of their requests."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from benchmarks.http_client import Answer, HttpClient

__all__ = ["HEAD", "Crowd", "is_right"]

HEAD = {"Content-Type": "application/json"}

_MOST_TRIES = 60


def is_right(answer: Answer, text: str | None) -> bool:
    """Whether a translation came, and is this one."""
    return answer.status == 200 and json.loads(answer.body)["translations"][0]["text"] == text


@dataclass(slots=True)
class Crowd:
    """What became of requests that were sent until they were answered."""

    statuses: Counter[int] = field(default_factory=Counter)
    refused_requests: int = 0
    without_retry_after: int = 0
    most_tries: int = 0
    wrong: int = 0
    lost: int = 0

    async def send(self, http: HttpClient, body: bytes, *, right: str | None) -> None:
        """Send a request, and once more after each refusal, when that says."""
        for tries in range(1, _MOST_TRIES + 1):
            answer = await http.post("/translate", body, headers=HEAD)
            self.statuses[answer.status] += 1
            self.most_tries = max(tries, self.most_tries)
            if answer.status != 429:
                self.wrong += not is_right(answer, right)
                return
            self.refused_requests += tries == 1
            self.without_retry_after += answer.retry_after_s is None
            await asyncio.sleep(answer.retry_after_s or 1)
        self.lost += 1

    def told(self) -> dict[str, Any]:
        """For the result file."""
        return {
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "refused": self.statuses[429],
            "refused_requests": self.refused_requests,
            "without_retry_after": self.without_retry_after,
            "most_tries": self.most_tries,
            "lost": self.lost,
            "wrong": self.wrong,
            "errors_5xx": sum(count for status, count in self.statuses.items() if status >= 500),
        }
