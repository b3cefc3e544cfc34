"""Beam search on a GPU in steps that are recorded once and replayed: the host only says go.

A step is the decoder, the output projection and what the beam makes of it, over memory that stays where it is. It is
recorded as a CUDA graph for each number of sentences; sentences that are done leave when half of them are.
"""

# Shapes: G sentences, K places of the beam, R = G * K rows, V vocabulary, T places of the longest hypothesis and its
# end mark.

import threading
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial

import torch
from torch import Tensor

from tandem.kernels.pick import pick_likeliest
from tandem.model import Transformer
from tandem.model.pooled_cache import PooledCache
from tandem.translate.beam import Hypothesis, read_hypotheses
from tandem.translate.beams import Beams, Rules, Search, Start, penalties, start_beams
from tandem.translate.engine import Sentence
from tandem.translate.marks import Marks
from tandem.translate.witness import pad_rows

__all__ = ["Need", "RecordedSearch", "bucket"]

FEWEST = 8
"""Sentences that are searched at once at the least, were some of them empty: fewer take a GPU as long."""

LOOK_EVERY = 4
"""Steps from one look at which sentences are done to the next: each makes the GPU wait for the host."""

MOST_ROOMS = 2
"""Ways of searching whose memory is kept, as a server is asked for one translation, then for several."""

_RECORDING = threading.Lock()
"""Before it records, PyTorch waits for the whole device, which ends what another thread records."""


def bucket(sentences: int) -> int:
    """The least number of sentences that steps are recorded for and that is not less than this one."""
    return max(FEWEST, 1 << (sentences - 1).bit_length())


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What memory a search takes."""

    sentences: int
    steps: int
    places: int
    """Of all that is said."""
    source_places: int

    def __or__(self, other: "Need") -> "Need":
        """What suffices for both."""
        return Need(
            sentences=max(self.sentences, other.sentences),
            steps=max(self.steps, other.steps),
            places=max(self.places, other.places),
            source_places=max(self.source_places, other.source_places),
        )

    def suffices_for(self, other: "Need") -> bool:
        """Whether there is room for all of the other."""
        return all(mine >= its for mine, its in zip(astuple(self), astuple(other), strict=True))


def _need(sentences: Sequence[Sentence], beam: int) -> Need:
    size = bucket(len(sentences))
    steps = max(sentence.most for sentence in sentences) + 1
    return Need(
        sentences=size,
        steps=1 << (steps - 1).bit_length(),
        places=_round_up(size * beam * steps),
        source_places=_round_up(size * (max(len(sentence.source) for sentence in sentences) + 1)),
    )


def _round_up(places: int) -> int:
    """A little more, so that a sentence that is a little longer finds room too."""
    step = 1 << max(0, places.bit_length() - 3)
    return -(-places // step) * step


class RecordedSearch:
    """Searches with one model, in one thread at a time; the weights must stay where they are until `forget`."""

    def __init__(self, model: Transformer, *, marks: Marks) -> None:
        self._model, self._marks = model, marks
        self._rooms: dict[tuple[int, int], _Room] = {}
        self._needs: dict[tuple[int, int], Need] = {}

    def expect(self, batches: Sequence[Sequence[Sentence]], *, beam: int, best: int) -> None:
        """Say what will be searched, so that memory is made for all of it at once."""
        for batch in batches:
            self._note((beam, best), _need(batch, beam))

    def forget(self) -> None:
        """Give all memory back."""
        self._rooms.clear()
        self._needs.clear()

    def __call__(self, sentences: Sequence[Sentence], search: Search) -> list[list[Hypothesis]]:
        """Hypotheses of each sentence, best first; none where the model gives no finite probability."""
        size, most = bucket(len(sentences)), max(sentence.most for sentence in sentences)
        room = self._room(_need(sentences, search.beam), search)
        room.start(sentences, search)
        closed: list[Beams] = []
        for place in range(most + 1):
            room.step(size)
            if (place + 1) % LOOK_EVERY and place < most:
                continue
            done_G = room.beams(size).are_done()
            going = size - int(done_G.sum())
            if not going:
                break
            smaller = bucket(going)
            if smaller < size:
                order_G = done_G.to(torch.uint8).sort(stable=True).indices
                closed.append(room.beams(size).rows(order_G[smaller:]))
                room.keep(order_G[:smaller])
                size = smaller
        return read_hypotheses([*closed, room.beams(size)], sentences=len(sentences))

    def _note(self, key: tuple[int, int], need: Need) -> Need:
        self._needs[key] = self._needs.get(key, need) | need
        return self._needs[key]

    def _room(self, need: Need, search: Search) -> "_Room":
        key = (search.beam, search.best)
        room = self._rooms.pop(key, None)
        if room is None or not room.size.suffices_for(need):
            room = None  # before the new one takes memory
            while len(self._rooms) >= MOST_ROOMS:
                del self._rooms[next(iter(self._rooms))]
            room = _Room(self._model, self._marks, search, self._note(key, need))
        self._rooms[key] = room  # the last one used is the last one to go
        return room


class _Room:
    """Memory for one way of searching, and the steps recorded in it."""

    def __init__(self, model: Transformer, marks: Marks, search: Search, size: Need) -> None:
        self.size = size
        self._model, self._marks = model, marks
        device = model.output_weight.device
        self._cache = PooledCache(
            model,
            sentences=size.sentences,
            beam=search.beam,
            steps=size.steps,
            places=size.places,
            source_places=size.source_places,
        )
        banned_V = torch.zeros(len(model.output_weight), dtype=torch.int8, device=device)
        banned_V[list(marks.banned)] = 1
        self._rules = Rules(
            search=search,
            end=marks.end,
            penalties_T=penalties(search.penalty, size.steps).to(device),
            pick=partial(pick_likeliest, banned_V=banned_V),
        )
        self._beams = start_beams([Start(0)] * size.sentences, self._rules)
        self._ids_R = torch.empty(size.sentences * search.beam, dtype=torch.long, device=device)
        self._length_1 = torch.zeros(1, dtype=torch.long, device=device)
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self._pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None

    def start(self, sentences: Sequence[Sentence], search: Search) -> None:
        """Begin with these sentences, and as many that are done at once as fill the bucket."""
        device = self._ids_R.device
        size, end = bucket(len(sentences)), self._marks.end
        sources = [(*sentence.source, end) for sentence in sentences]
        source = pad_rows([*sources, *[(end,)] * (size - len(sources))], pad=self._model.pad, device=device)
        self._cache.start(self._model.encode(source))
        self._rules.penalties_T.copy_(penalties(search.penalty, self.size.steps))
        starts = [Start(sentence.most, sentence.prefix) for sentence in sentences]
        rules = replace(self._rules, search=search)  # whose penalty may be another than last time
        begun = start_beams([*starts, *[Start(0)] * (size - len(starts))], rules)
        self._take(self.beams(size), begun)
        self._ids_R.fill_(self._marks.start)
        self._length_1.zero_()

    def beams(self, sentences: int) -> Beams:
        """The state of the first so many sentences."""
        return Beams(*(column[:sentences] for column in self._beams))

    def keep(self, sentences_G: Tensor) -> None:
        """Of the sentences, only these go on, in this order."""
        size, beam = len(sentences_G), self._rules.search.beam
        self._take(self.beams(size), self._beams.rows(sentences_G))
        self._cache.keep(sentences_G)
        ids_GK = self._ids_R.view(-1, beam)
        ids_GK[:size].copy_(ids_GK.index_select(0, sentences_G))

    def step(self, sentences: int) -> None:
        """One step of the first so many sentences: recorded at the first time, replayed from then on."""
        graph = self._graphs.get(sentences)
        if graph is not None:
            graph.replay()
            return
        # What is compiled or opened for the first time is not for a recording.
        self._step(sentences)
        if self._pool is not None:
            self._graphs[sentences] = self._record(sentences)

    def _record(self, sentences: int) -> torch.cuda.CUDAGraph:
        graph, before = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        try:
            # Other threads may use the GPU meanwhile.
            with _RECORDING, torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                self._step(sentences)
        except BaseException as error:
            # PyTorch leaves the thread on the stream of a recording that failed, and may hide why it did.
            torch.cuda.set_stream(before)
            if isinstance(error.__context__, torch.OutOfMemoryError):
                raise error.__context__ from None
            raise
        return graph

    def _step(self, sentences: int) -> None:
        beams, rows = self.beams(sentences), self._cache.rows(sentences)
        ids_R = self._ids_R[: sentences * self._rules.search.beam]
        logits_RV = self._model.logits(self._model.step(ids_R, rows))
        grown = beams.grown(logits_RV, self._length_1, self._rules)
        if self._rules.search.beam > 1:
            rows.follow(grown.rows_R)
        ids_R.copy_(grown.ids_R)
        self._take(beams, grown.beams)
        self._length_1 += 1

    @staticmethod
    def _take(held: Beams, new: Beams) -> None:
        for mine, its in zip(held, new, strict=True):
            if mine is not its:
                mine.copy_(its)
