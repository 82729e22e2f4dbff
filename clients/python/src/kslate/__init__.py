"""kslate: shared records, leases and checkpoints for fleets of software agents.

`Client` has one method per operation; `Claim` is a lease that keeps itself; `run` is the agent loop.
"""

from kslate._actions import Action, Append, Complete, Release, Write
from kslate._claim import Claim
from kslate._client import Client
from kslate._cycle import Agent
from kslate._errors import (
    AlreadyExists,
    Busy,
    Completed,
    Conflict,
    ConnectionFailed,
    Denied,
    EvidenceRequired,
    GatewayFailed,
    Held,
    IdempotencyConflict,
    Immutable,
    Internal,
    InvalidCheckpoint,
    InvalidClass,
    InvalidValue,
    KslateError,
    LeaseLost,
    Malformed,
    MethodNotAllowed,
    NotCompleted,
    NotFound,
    PayloadTooLarge,
    Rejected,
    ScopeDenied,
    Timeout,
    Transient,
    Unauthenticated,
    Unavailable,
    UnexpectedAnswer,
    UnsupportedMediaType,
    VersionConflict,
)
from kslate._fields import Fields
from kslate._loop import Summary, run
from kslate._request import Change
from kslate._results import (
    AppendResult,
    Blame,
    BlameRow,
    ChangedField,
    Checkpoint,
    CheckpointPage,
    CheckpointSaved,
    CheckpointSummary,
    ClaimState,
    ClassApplied,
    ClassDefinition,
    ClassPage,
    ClassSummary,
    CompleteResult,
    CreateResult,
    Entry,
    EntryPage,
    FieldState,
    ForceReleaseResult,
    HistoryPage,
    HistoryRow,
    PointsTo,
    Record,
    RecordPage,
    ReleaseResult,
    RenewResult,
    ReopenResult,
    Whoami,
    WriteManyResult,
    WriteResult,
    WrittenChange,
)

__version__ = "0.2.0"

__all__ = [
    "Action", "Agent", "AlreadyExists", "Append", "AppendResult", "Blame", "BlameRow", "Busy", "Change", "ChangedField",
    "Checkpoint", "CheckpointPage", "CheckpointSaved", "CheckpointSummary", "Claim", "ClaimState", "ClassApplied",
    "ClassDefinition", "ClassPage", "ClassSummary", "Client", "Complete", "CompleteResult", "Completed", "Conflict",
    "ConnectionFailed", "CreateResult", "Denied", "Entry", "EntryPage", "EvidenceRequired", "FieldState", "Fields",
    "ForceReleaseResult", "GatewayFailed", "Held", "HistoryPage", "HistoryRow", "IdempotencyConflict", "Immutable",
    "Internal", "InvalidCheckpoint", "InvalidClass", "InvalidValue", "KslateError", "LeaseLost", "Malformed",
    "MethodNotAllowed", "NotCompleted", "NotFound", "PayloadTooLarge", "PointsTo", "Record", "RecordPage", "Rejected",
    "Release", "ReleaseResult", "RenewResult", "ReopenResult", "ScopeDenied", "Summary", "Timeout", "Transient",
    "Unauthenticated", "Unavailable", "UnexpectedAnswer", "UnsupportedMediaType", "VersionConflict", "Whoami", "Write",
    "WriteManyResult", "WriteResult", "WrittenChange", "run",
]  # fmt: skip

for _name in __all__:
    if _name != "Action":  # a union, which has no module
        globals()[_name].__module__ = "kslate"  # in tracebacks, the name that one imports
