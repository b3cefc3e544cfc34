"""The programs whose preparation of text is measured: how each is installed, and what it is asked to do."""

import json
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import sentencepiece
from benchmarks.measure import Stages, all_cores
from benchmarks.program import BENCH, Program, call, install_toolkit

__all__ = ["FAIRSEQ", "FLOOR", "SIDES", "TANDEM", "TOOLKITS", "Job", "Side"]

_SENTENCEPIECE = version("sentencepiece")
_SPM_ENCODE = BENCH / f"spm_encode-{_SENTENCEPIECE}" / "build" / "src" / "spm_encode"
_SPECIALS = ["<pad>", "<unk>", "<s>", "</s>"]

# The source archive holds absl's code without its build files, which sentencepiece's own would clone from GitHub.
_ABSL_CONFIG = """
file(GLOB_RECURSE sources ${CMAKE_SOURCE_DIR}/third_party/absl/*.cc)
list(FILTER sources EXCLUDE REGEX "test|benchmark|mock|matchers|gentables|print_hash_of|_win")
find_package(Threads REQUIRED)
add_library(absl_bundled STATIC ${sources})
target_include_directories(absl_bundled PUBLIC ${CMAKE_SOURCE_DIR}/third_party)
target_link_libraries(absl_bundled PUBLIC Threads::Threads)
foreach(part base status status_builder strings flags flags_parse log log_initialize check random_random time)
  add_library(absl::${part} ALIAS absl_bundled)
endforeach()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Text to prepare with a subword model; paths are seen from `out`, where results go."""

    source: str
    target: str
    model: str
    out: Path
    cores: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Side(Program):
    """A program that prepares text, and the commands by which it does a job."""

    stages: Callable[[Job], Stages]
    copies: bool = False
    """Whether it is one process, so that on several cores as many copies each do the whole job."""


def _install_spm_encode(home: Path) -> None:
    log = home / "log"
    wanted = ["--no-deps", "--no-binary", "sentencepiece", f"sentencepiece=={_SENTENCEPIECE}"]
    call([sys.executable, "-m", "pip", "download", *wanted, "--dest", home], log=log)
    with tarfile.open(home / f"sentencepiece-{_SENTENCEPIECE}.tar.gz") as archive:
        archive.extractall(home, filter="data")
    source = home / f"sentencepiece-{_SENTENCEPIECE}" / "sentencepiece"
    if not (source / "third_party" / "absl").is_dir():
        raise SystemExit(
            f"the source archive of sentencepiece {_SENTENCEPIECE} holds no C++ code to build from"
        )
    (home / "abslConfig.cmake").write_text(_ABSL_CONFIG)
    switches = ["-DCMAKE_BUILD_TYPE=Release", "-DSPM_ENABLE_SHARED=OFF", "-DSPM_ENABLE_TCMALLOC=OFF"]
    absl = ["-DSPM_ABSL_PROVIDER=package", f"-Dabsl_DIR={home}"]
    call(["cmake", "-S", source, "-B", home / "build", *switches, *absl], log=log)
    call(
        ["cmake", "--build", home / "build", "--target", "spm_encode", "--parallel", str(all_cores())],
        log=log,
    )


def _install_sockeye(home: Path) -> None:
    install_toolkit(home, "sockeye==3.1.34", needs=["numpy<2", "pyyaml", "sacrebleu"])


def _install_fairseq(home: Path) -> None:
    needs = ["numpy==1.23.5", "setuptools", "wheel", "cython", "regex", "tqdm", "sacrebleu"]
    install_toolkit(home, "fairseq==0.9.0", needs=needs)


def _tandem(job: Job) -> Stages:
    recipe = {
        "name": "bench",
        "data": {"train": [{"source": job.source, "target": job.target, "name": "bench"}], "folder": "out"},
        "subword": {"model": job.model},
    }
    (job.out / "recipe.yaml").write_text(json.dumps(recipe))
    tandem = Path(sys.executable).with_name("tandem")
    return [[[str(tandem), "data", "prepare", "recipe.yaml", "--workers", str(job.cores)]]]


def _spm_encode_ids(job: Job) -> Stages:
    """Encode both sides in one process, so that the model is loaded once: the hardest floor."""
    command = [str(_SPM_ENCODE), f"--model={job.model}", "--output_format=id"]
    return [[[*command, f"--output=ids-{copy}", job.source, job.target] for copy in range(job.cores)]]


def _spm_encode_pieces(job: Job) -> list[list[list[str]]]:
    """Segment both sides for a toolkit that reads pieces: side by side where there are cores for it."""
    command = [str(_SPM_ENCODE), f"--model={job.model}", "--output_format=piece"]
    texts = {"en": job.source, "de": job.target}
    commands = [[*command, f"--output=pieces.{end}", text] for end, text in texts.items()]
    return [commands] if job.cores > 1 else [[each] for each in commands]


def _sockeye(job: Job) -> Stages:
    numbered = {piece: number for number, piece in enumerate([*_SPECIALS, *_pieces(job)])}
    (job.out / "vocabulary.json").write_text(json.dumps(numbered))
    texts = ["--source", "pieces.en", "--target", "pieces.de", "--max-seq-len", "256"]
    vocabulary = ["--source-vocab", "vocabulary.json", "--target-vocab", "vocabulary.json", "--shared-vocab"]
    cores = ["--max-processes", str(job.cores), "--min-num-shards", str(job.cores)]
    python = str(SOCKEYE.home / "bin" / "python")
    prepare = [python, "-m", "sockeye.prepare_data", *texts, *vocabulary, *cores, "--output", "out"]
    return [*_spm_encode_pieces(job), [prepare]]


def _fairseq(job: Job) -> Stages:
    (job.out / "vocabulary.txt").write_text("".join(f"{piece} 1\n" for piece in _pieces(job)))
    texts = ["--source-lang", "en", "--target-lang", "de", "--trainpref", "pieces"]
    vocabulary = ["--srcdict", "vocabulary.txt", "--joined-dictionary"]
    python = str(FAIRSEQ.home / "bin" / "python")
    module = [python, "-W", "ignore", "-m", "fairseq_cli.preprocess"]
    prepare = [*module, *texts, *vocabulary, "--workers", str(job.cores), "--destdir", "out"]
    return [*_spm_encode_pieces(job), [prepare]]


def _pieces(job: Job) -> list[str]:
    model = sentencepiece.SentencePieceProcessor(model_file=str(job.out / job.model))
    pieces = range(model.vocab_size())
    return [model.id_to_piece(piece) for piece in pieces if model.id_to_piece(piece) not in _SPECIALS]


TANDEM = Side(
    name="tandem",
    version=version("tandem-nmt"),
    does="reads raw text, cleans (every default filter), encodes, drops pairs of more than 256 pieces, writes "
    "checksummed memory-mapped shards and the data card",
    stages=_tandem,
)
FLOOR = Side(
    name="spm_encode",
    version=_SENTENCEPIECE,
    does="SentencePiece's C++ program: reads raw text, encodes, writes ids as text; no cleaning, no training format",
    stages=_spm_encode_ids,
    install=_install_spm_encode,
    copies=True,
)
SOCKEYE = Side(
    name="sockeye",
    version="3.1.34",
    does="spm_encode to pieces, then sockeye.prepare_data with a given vocabulary: drops pairs of more than "
    "256 pieces, writes padded buckets",
    stages=_sockeye,
    install=_install_sockeye,
)
FAIRSEQ = Side(
    name="fairseq",
    version="0.9.0",
    does="spm_encode to pieces, then fairseq-preprocess with a given dictionary: writes memory-mapped ids; "
    "no cleaning",
    stages=_fairseq,
    install=_install_fairseq,
)

# fairseq 0.9.0 needs numpy below 1.24, which no later Python has; 0.12.2 already fails to import on 3.11.
TOOLKITS = (SOCKEYE, FAIRSEQ) if sys.version_info < (3, 12) else (SOCKEYE,)
SIDES = (TANDEM, FLOOR, *TOOLKITS)
