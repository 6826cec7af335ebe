"""Belljar: disposable computers for code that a model wrote.

    from belljar import Belljar

    with Belljar().create() as sandbox:
        print(sandbox.run("python3 -c 'print(6 * 7)'").stdout)

Every name that is used from outside is here; the modules are an arrangement of this package's own.
"""

from .administration import Cleanup, Engine, Key, NewKey, Project, Quota, ServerInfo, Webhook, Whoami
from .artifact_models import ArtifactInfo
from .audit import AuditVerdict
from .awaiting import AsyncStream
from .blocking import Stream
from .client import AsyncBelljar, Belljar
from .code import AsyncContext, Context
from .code_models import CodeError, CodeEvent, CodeResult, ContextInfo, Execution
from .errors import BadAnswer, BelljarError, Busy, CodeFailed, CommandFailed, Conflict, Ended, Exists, Forbidden, GuestRefused, Invalid, Misuse
from .errors import NotConfigured, NotFound, PortClosed, QuotaExceeded, Refused, ServerFault, TooLarge, Unauthorized, Unreachable, Unsupported
from .file_models import Change, FileInfo, Hit
from .metering import Budget, Consumption, MeterReading, UsageReport
from .ports import AsyncPort, Port
from .process_models import Cleaning, Event, Exit, Gap, Omitted, Output, ProcessInfo, Result
from .processes import AsyncProcess, Process
from .request import Answer
from .sandbox_models import End, GuestMetrics, Limits, PortInfo, PortToken, Recording, SandboxInfo, SnapshotInfo, Tree, Usage, VolumeMount
from .sandboxes import AsyncSandbox, Sandbox
from .snapshots import PushedSnapshot
from .templates import BuildStep, TemplateInfo
from .transport import VERSION as __version__
from .volumes import VolumeHolder, VolumeInfo

__all__ = [
    "Answer", "ArtifactInfo", "AsyncBelljar", "AsyncContext", "AsyncPort", "AsyncProcess", "AsyncSandbox", "AsyncStream", "AuditVerdict", "BadAnswer",
    "Belljar", "BelljarError", "Budget", "BuildStep", "Busy", "Change", "Cleaning", "Cleanup", "CodeError", "CodeEvent", "CodeFailed", "CodeResult",
    "CommandFailed", "Conflict", "Consumption", "Context", "ContextInfo", "End", "Ended", "Engine", "Event", "Execution", "Exists", "Exit", "FileInfo",
    "Forbidden", "Gap", "GuestMetrics", "GuestRefused", "Hit", "Invalid", "Key", "Limits", "MeterReading", "Misuse", "NewKey", "NotConfigured", "NotFound",
    "Omitted", "Output", "Port", "PortClosed", "PortInfo", "PortToken", "Process", "ProcessInfo", "Project", "PushedSnapshot", "Quota", "QuotaExceeded",
    "Recording", "Refused", "Result", "Sandbox", "SandboxInfo", "ServerFault", "ServerInfo", "SnapshotInfo", "Stream", "TemplateInfo", "TooLarge", "Tree",
    "Unauthorized", "Unreachable", "Unsupported", "Usage", "UsageReport", "VolumeHolder", "VolumeInfo", "VolumeMount", "Webhook", "Whoami", "__version__",
]
