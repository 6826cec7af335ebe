"""The Python SDK beside the OpenAPI document: every operation has a method, and every answer's fields are known. What the API gains, the SDK must gain or name here.

  python3 -m unittest tests/sdk/contract.py     (with the SDK installed; scripts/test-sdk does)
"""

import dataclasses
import json
import unittest
from pathlib import Path

import belljar
from belljar import administration, artifacts, audit, client, code, files, interpreter, metering, ports, processes, sandboxes, snapshots, templates, volumes
from belljar.code_models import CodeError, CodeResult, ContextInfo, Execution

DOCUMENT = json.loads((Path(__file__).resolve().parent.parent.parent / "docs/reference/openapi.json").read_text())

METHODS = {
    client.ClientVerbs: {
        "createSandbox": "create", "getSandbox": "open", "listSandboxes": "list", "forkSnapshot": "fork_snapshot", "whoami": "whoami", "server": "server",
        "ready": "is_ready", "readUsage": "usage", "collectGarbage": "collect_garbage",
        # For programs that are not about sandboxes.
        "health": "request", "metrics": "request", "openapi": "request",
    },
    sandboxes.SandboxVerbs: {
        "killSandbox": "kill", "updateSandbox": "change", "setLease": "lease", "pauseSandbox": "pause", "resumeSandbox": "resume", "forkSandbox": "fork",
        "takeSnapshot": "snapshot", "rollBackSandbox": "rollback", "getTree": "tree", "getUsage": "usage", "getGuestMetrics": "metrics", "keepFile": "keep_file",
        "listRecordings": "recordings", "fetchRecording": "recording", "listPorts": "ports", "makePortToken": "port", "exec": "run", "startProcess": "start",
        "getProcess": "process", "listProcesses": "processes",
        # What a WebSocket does is done by `start` and the verbs of a process, which resume by themselves.
        "startWebSocket": "start", "attachWebSocket": "process",
    },
    processes.ProcessVerbs: {
        "readOutput": "events", "writeStdin": "write", "closeStdin": "close_stdin", "signalProcess": "signal", "resizeTerminal": "resize", "waitProcess": "wait",
    },
    ports.PortVerbs: {f"reachPort{method}": "request" for method in ("", "Get", "Put", "Post", "Delete", "Head", "Patch", "Options")},
    interpreter.InterpreterVerbs: {"runCode": "__call__", "createContext": "context", "listContexts": "contexts"},
    code.ContextVerbs: {"removeContext": "remove", "restartContext": "restart", "interruptContext": "interrupt"},
    files.FileVerbs: {
        "readFile": "read", "writeFile": "write", "removeFile": "remove", "headFile": "stat", "changeFile": "change", "listFiles": "list", "statFile": "stat",
        "makeDirectory": "mkdir", "moveFile": "move", "searchFiles": "search", "searchFilesByBody": "search", "watchFiles": "watch",
        "getAttribute": "get_attribute", "setAttribute": "set_attribute", "removeAttribute": "remove_attribute",
    },
    snapshots.SnapshotVerbs: {
        "listSnapshots": "list", "getSnapshot": "get", "removeSnapshot": "remove", "exportSnapshot": "download", "importSnapshot": "upload",
        "pushSnapshot": "push", "pullSnapshot": "pull",
    },
    volumes.VolumeVerbs: {
        "listVolumes": "list", "createVolume": "create", "getVolume": "get", "removeVolume": "remove", "cloneVolume": "clone", "readVolumeFile": "read_file",
        "writeVolumeFile": "write_file", "removeVolumeFile": "remove_file", "changeVolumeFile": "change_file", "listVolumeFiles": "list_files",
        "makeVolumeDirectory": "make_directory", "moveVolumeFile": "move_file", "statVolumeFile": "stat_file",
    },
    templates.TemplateVerbs: {"listTemplates": "list", "getTemplate": "get", "makeTemplate": "build", "removeTemplate": "remove", "uploadTemplate": "upload"},
    artifacts.ArtifactVerbs: {"listArtifacts": "list", "getArtifact": "get", "removeArtifact": "remove", "fetchArtifact": "read"},
    audit.AuditVerbs: {"readAudit": "events", "verifyAudit": "verify", "exportAudit": "export"},
    metering.BudgetVerbs: {"listBudgets": "list", "setBudget": "set", "removeBudget": "remove"},
    administration.ProjectVerbs: {"listProjects": "list", "addProject": "add", "getProject": "get", "removeProject": "remove", "updateProject": "change"},
    administration.KeyVerbs: {"listKeys": "list", "addKey": "add", "removeKey": "remove"},
    administration.WebhookVerbs: {"listWebhooks": "list", "addWebhook": "add", "removeWebhook": "remove"},
}

MODELS = {
    "Artifact": belljar.ArtifactInfo, "AuditVerdict": belljar.AuditVerdict, "Budget": belljar.Budget, "Caller": belljar.Whoami, "Cleaning": belljar.Cleaning,
    "CodeContext": ContextInfo, "CodeError": CodeError, "CodeOutcome": Execution, "CodeResult": CodeResult, "Consumption": belljar.Consumption,
    "ConsumptionList": belljar.UsageReport, "Exit": belljar.Exit, "File": belljar.FileInfo, "GcResult": belljar.Cleanup, "GuestMetrics": belljar.GuestMetrics,
    "Key": belljar.Key, "Limits": belljar.Limits, "MeterReading": belljar.MeterReading, "NewKey": belljar.NewKey, "NewWebhook": belljar.Webhook,
    "Port": belljar.PortInfo, "PortToken": belljar.PortToken, "Process": belljar.ProcessInfo, "Project": belljar.Project,
    "PushedSnapshot": belljar.PushedSnapshot, "Quota": belljar.Quota, "Recording": belljar.Recording, "Sandbox": belljar.SandboxInfo,
    "SandboxEnd": belljar.End, "Server": belljar.ServerInfo, "Snapshot": belljar.SnapshotInfo, "Template": belljar.TemplateInfo, "Tree": belljar.Tree,
    "Usage": belljar.Usage, "VolumeHolder": belljar.VolumeHolder, "VolumeMountBody": belljar.VolumeMount, "VolumeStatus": belljar.VolumeInfo,
}

# What may be asked for, by the schema of the request, and the method's arguments for it.
ARGUMENTS = {
    "CreateRequest": (client.ClientVerbs.create, {"limits": "cpu", "lease_seconds": "lease", "idle_timeout_seconds": "idle_timeout"}),
    "LimitsRequest": (client.ClientVerbs.create, {
        "cpu_millis": "cpu", "memory_bytes": "memory", "disk_bytes": "disk", "wall_time_seconds": "wall_time",
    }),
    "UpdateRequest": (sandboxes.SandboxVerbs.change, {"lease_seconds": "lease", "idle_timeout_seconds": "idle_timeout"}),
    "ForkRequest": (sandboxes.SandboxVerbs.fork, {"all_or_nothing": "count", "lease_seconds": "lease", "idle_timeout_seconds": "idle_timeout"}),
    "StartRequest": (sandboxes.SandboxVerbs.start, {"argv": "command", "deadline_seconds": "timeout", "spool": "overflow"}),
    "ExecRequest": (sandboxes.SandboxVerbs.run, {
        "argv": "command", "stdin": "input", "stdin_base64": "input", "timeout_seconds": "timeout", "output": "escapes", "max_output_bytes": "max_output",
    }),
    "SnapshotRequest": (sandboxes.SandboxVerbs.snapshot, {"expires_in_seconds": "expires_in"}),
    "KeepRequest": (sandboxes.SandboxVerbs.keep_file, {"expires_in_seconds": "expires_in"}),
    "CodeRequest": (interpreter.InterpreterVerbs.__call__, {"context": "language", "timeout_seconds": "timeout"}),
    "VolumeRequest": (volumes.VolumeVerbs.create, {"size_bytes": "size"}),
    "CloneVolumeRequest": (volumes.VolumeVerbs.clone, {"size_bytes": "size"}),
    "BudgetRequest": (metering.BudgetVerbs.set, {}),
    "KeyRequest": (administration.KeyVerbs.add, {"expires_in_seconds": "expires_in"}),
}


def fields_of(name):
    """The fields of a schema, and those that are always there."""
    schema = DOCUMENT["components"]["schemas"][name]
    parts = [DOCUMENT["components"]["schemas"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part for part in schema.get("allOf", [schema])]
    return {field for part in parts for field in part["properties"]}, {field for part in parts for field in part.get("required", [])}


class Contract(unittest.TestCase):
    def test_every_operation_has_a_method(self):
        asked = {how["operationId"] for ways in DOCUMENT["paths"].values() for how in ways.values() if isinstance(how, dict)}
        self.assertEqual(asked, {operation for named in METHODS.values() for operation in named})
        for verbs, named in METHODS.items():
            for method in named.values():
                self.assertTrue(vars(verbs)[method].__doc__, (verbs, method))

    def test_every_field_of_an_answer_is_known(self):
        for name, model in MODELS.items():
            known = {field.name for field in dataclasses.fields(model)}
            needed = {field.name for field in dataclasses.fields(model) if field.default is field.default_factory is dataclasses.MISSING}
            fields, always = fields_of(name)
            self.assertEqual(fields - known, set(), name)
            self.assertEqual(needed - always, set(), name)

    def test_everything_that_may_be_asked_for_has_an_argument(self):
        for name, (method, other) in ARGUMENTS.items():
            code = method.plan.__code__
            arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            missing = [field for field in fields_of(name)[0] if other.get(field, field) not in arguments]
            self.assertEqual(missing, [], name)


if __name__ == "__main__":
    unittest.main()
