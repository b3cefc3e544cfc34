"""The models of the server: which one a request means."""

from collections.abc import Sequence
from typing import Any

from tandem.serve.language import Guess, language_name
from tandem.serve.served import ServedModel, check_names
from tandem.web.refusal import Refusal

__all__ = ["Catalogue"]


class Catalogue:
    """Models by name and by languages; the first of a pair of languages is its default."""

    def __init__(self, models: Sequence[ServedModel], *, guess: Guess | None = None) -> None:
        check_names(models)
        self.models = tuple(models)
        self.guess = guess

    @property
    def sources(self) -> list[str]:
        """Languages that can be translated."""
        return sorted({model.source for model in self.models})

    @property
    def targets(self) -> list[str]:
        """Languages that can be translated into."""
        return sorted({model.target for model in self.models})

    def find(
        self, *, name: str | None = None, source: str | None = None, target: str | None = None
    ) -> ServedModel:
        """The model that is meant by what is said; refuses where none is, or where it could be of two kinds."""
        fitting = [
            model
            for model in self.models
            if name in {None, model.name}
            and source in {None, model.source}
            and target in {None, model.target}
        ]
        if not fitting:
            raise Refusal(422, f"There is no such model or pair of languages here, only {self._offer()}.")
        if len({(model.source, model.target) for model in fitting}) > 1:
            raise Refusal(422, f"Say source and target, or model: there are {self._offer()}.")
        return fitting[0]

    def detect(self, text: str, *, target: str) -> tuple[str, float]:
        """The likeliest language of a text among those that can be translated into `target`, and how sure that is."""
        sources = sorted({model.source for model in self.models if model.target == target})
        if not sources:
            raise Refusal(422, f"There is no such model or pair of languages here, only {self._offer()}.")
        if self.guess is not None:
            return self.guess(text, sources)
        if len(sources) > 1:
            raise Refusal(422, "This server cannot tell languages: say the source instead of auto.")
        return sources[0], 0.0

    def languages(self) -> list[dict[str, Any]]:
        """All languages as LibreTranslate lists them."""
        reached = {
            code: sorted({model.target for model in self.models if model.source == code})
            for code in sorted({*self.sources, *self.targets})
        }
        return [
            {"code": code, "name": language_name(code), "targets": targets}
            for code, targets in reached.items()
        ]

    def listing(self) -> list[dict[str, Any]]:
        """All models, for people and programs that choose one."""
        return [
            {
                "name": model.name,
                "source": model.source,
                "target": model.target,
                "source_name": language_name(model.source),
                "target_name": language_name(model.target),
            }
            for model in self.models
        ]

    def _offer(self) -> str:
        return ", ".join(f"{model.name} ({model.source} to {model.target})" for model in self.models)
