"""Triton's interpreter without the half of its time in which it looks through its language for what to replace."""

import sys
from functools import cache
from types import FunctionType, SimpleNamespace
from typing import Any

__all__ = ["replace_language_once"]

_NOTHING_TO_RESTORE = SimpleNamespace(restore=lambda: None)


def replace_language_once(interpreter: Any) -> None:
    """A launch replaces the language for all that it calls; a function called by a kernel need not do it again."""
    language = sys.modules["triton.language"]
    replace = interpreter._patch_lang

    @cache
    def languages(function: FunctionType) -> list[Any]:
        return [each for each in function.__globals__.values() if each is language or each is language.core]

    def replace_if_needed(function: FunctionType) -> Any:
        first = [language.tensor.__add__, *(each.program_id for each in languages(function))]
        is_original = any(map(language.core.is_builtin, first))
        return replace(function) if is_original else _NOTHING_TO_RESTORE

    interpreter._patch_lang = replace_if_needed
