"""kslate: shared records, leases and checkpoints for fleets of software agents.

`Client` has one method per operation; `Claim` is a lease that keeps itself; `run` is the agent loop.
"""

from kslate._claim import Claim
from kslate._client import Client
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

__version__ = "0.1.0"

__all__ = [
    "AlreadyExists", "AppendResult", "Blame", "BlameRow", "Busy", "Change", "ChangedField", "Checkpoint", "CheckpointPage",
    "CheckpointSaved", "CheckpointSummary", "Claim", "ClaimState", "ClassApplied", "ClassDefinition", "ClassPage",
    "ClassSummary", "Client", "CompleteResult", "Completed", "Conflict", "ConnectionFailed", "CreateResult", "Denied", "Entry",
    "EntryPage", "EvidenceRequired", "FieldState", "ForceReleaseResult", "GatewayFailed", "Held", "HistoryPage", "HistoryRow",
    "IdempotencyConflict", "Immutable", "Internal", "InvalidCheckpoint", "InvalidClass", "InvalidValue", "KslateError",
    "LeaseLost", "Malformed", "MethodNotAllowed", "NotCompleted", "NotFound", "PayloadTooLarge", "PointsTo", "Record",
    "RecordPage", "Rejected", "ReleaseResult", "RenewResult", "ReopenResult", "ScopeDenied", "Timeout", "Transient",
    "Unauthenticated", "Unavailable", "UnexpectedAnswer", "UnsupportedMediaType", "VersionConflict", "Whoami",
    "WriteManyResult", "WriteResult", "WrittenChange",
]  # fmt: skip

for _name in __all__:
    globals()[_name].__module__ = "kslate"  # in tracebacks, the name that one imports
