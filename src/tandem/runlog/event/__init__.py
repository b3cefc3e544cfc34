"""The facts that a run writes down: one frozen dataclass for each thing that happened."""

from tandem.runlog.event.checkpoint import (
    CheckpointFailed,
    CheckpointRejected,
    CheckpointRemoved,
    CheckpointWritten,
)
from tandem.runlog.event.data import BatchesPlanned, DataPrepared, StageFinished, StageStarted
from tandem.runlog.event.evaluation import (
    EvaluationFinished,
    EvaluationStarted,
    LossMeasured,
    SampleTranslated,
    TranslationScored,
)
from tandem.runlog.event.fact import Event, Unknown
from tandem.runlog.event.hosts import HostExamined, LinkMeasured
from tandem.runlog.event.run import (
    EventsDropped,
    HostRefused,
    RoundStarted,
    RunFinished,
    RunStarted,
    StopAsked,
    WorkersLost,
)
from tandem.runlog.event.training import (
    BatchFitted,
    BatchSplit,
    StepFinished,
    TrainingFinished,
    TrainingStarted,
)

__all__ = [
    "EVENTS",
    "BatchFitted",
    "BatchSplit",
    "BatchesPlanned",
    "CheckpointFailed",
    "CheckpointRejected",
    "CheckpointRemoved",
    "CheckpointWritten",
    "DataPrepared",
    "EvaluationFinished",
    "EvaluationStarted",
    "Event",
    "EventsDropped",
    "HostExamined",
    "HostRefused",
    "LinkMeasured",
    "LossMeasured",
    "RoundStarted",
    "RunFinished",
    "RunStarted",
    "SampleTranslated",
    "StageFinished",
    "StageStarted",
    "StepFinished",
    "StopAsked",
    "TrainingFinished",
    "TrainingStarted",
    "TranslationScored",
    "Unknown",
    "WorkersLost",
]

EVENTS: tuple[type[Event], ...] = (
    RunStarted,
    HostExamined,
    LinkMeasured,
    RoundStarted,
    HostRefused,
    StageStarted,
    StageFinished,
    DataPrepared,
    BatchesPlanned,
    BatchFitted,
    TrainingStarted,
    StepFinished,
    BatchSplit,
    EvaluationStarted,
    LossMeasured,
    TranslationScored,
    SampleTranslated,
    EvaluationFinished,
    CheckpointWritten,
    CheckpointRemoved,
    CheckpointRejected,
    CheckpointFailed,
    TrainingFinished,
    StopAsked,
    WorkersLost,
    EventsDropped,
    RunFinished,
)
