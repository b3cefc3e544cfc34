"""One rank of a run: what `tandem train` starts as its workers, as `python -m tandem.cli.rank`."""

# Nothing heavy is imported before the process is tied to its parent.

import argparse
from pathlib import Path

from tandem.launch.worker import supervised, tell_stopped

__all__ = ["main"]


def main() -> None:
    """Train as the rank that the environment names, on the recipe in the run's folder."""
    parser = argparse.ArgumentParser(prog="python -m tandem.cli.rank", description=main.__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--device", required=True)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--batch-tokens", type=int)
    parser.add_argument("--timeout", type=float, default=600.0)
    words = parser.parse_args()
    with supervised():
        from tandem.config import load_recipe
        from tandem.train.assemble import Options, train_rank

        recipe = load_recipe(words.run / "recipe.yaml").recipe
        options = Options(
            device=words.device, fit=words.fit, batch_tokens=words.batch_tokens, timeout_s=words.timeout
        )
        if name := train_rank(words.run, recipe, options):
            tell_stopped(name)


if __name__ == "__main__":
    main()
