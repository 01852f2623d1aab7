"""The engine: Algorithm 1, its sources of data, step sizes, history and callbacks."""

from tempering.inference.callbacks import Report
from tempering.inference.checkpoint import Checkpoint, CheckpointWarning
from tempering.inference.engine import Algorithm, evaluate_elbo
from tempering.inference.fitting import fit
from tempering.inference.run import Constant, History, Record, Result, RobbinsMonro, Settling
from tempering.inference.saddle import SaddleWarning
from tempering.inference.sources import ArraySource, Batch, BlockSource, Source
from tempering.storage.state import stored

__all__ = [
    "Algorithm",
    "ArraySource",
    "Batch",
    "BlockSource",
    "Checkpoint",
    "CheckpointWarning",
    "Constant",
    "History",
    "Record",
    "Report",
    "Result",
    "RobbinsMonro",
    "SaddleWarning",
    "Settling",
    "Source",
    "evaluate_elbo",
    "fit",
    "stored",
]
