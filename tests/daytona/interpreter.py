"""Daytona's unmodified Python SDK against a Belljar server: code in contexts that remember, on the template code-interpreter-v1.

Needs only the SDK and its environment variables (DAYTONA_API_KEY, DAYTONA_API_URL). Ends with status 1 at the first difference.
"""

from importlib.metadata import version

from daytona import CreateSandboxFromSnapshotParams, Daytona, DaytonaError

from lab.checks import check, checked, raises


def main():
    daytona = Daytona()
    sandbox = daytona.create(CreateSandboxFromSnapshotParams(snapshot="code-interpreter-v1"))
    code = sandbox.code_interpreter
    heard = []
    first = code.run_code("x = 41\nprint('out')\nimport sys; print('err', file=sys.stderr)", on_stdout=lambda said: heard.append(said.output))
    check("output", (first.stdout, first.stderr, first.error, "".join(heard)), ("out\n", "err\n", None, "out\n"))
    check("what was set stays", code.run_code("print(x + 1)").stdout, "42\n")
    check("environment", code.run_code("import os; print(os.environ['A'])", envs={"A": "b"}).stdout, "b\n")
    failed = code.run_code("1/0")
    check("an error", (failed.error.name, "division" in failed.error.value, "ZeroDivisionError" in failed.error.traceback), ("ZeroDivisionError", True, True))
    context = code.create_context(cwd="/tmp")
    check("a context", (context.cwd, context.language), ("/tmp", "python"))
    check("it is listed", context.id in [one.id for one in code.list_contexts()])
    check("it knows nothing", code.run_code("print(x)", context=context).error.name, "NameError")
    code.run_code("x = 1", context=context)
    check("of the others", code.run_code("print(x)").stdout, "41\n")
    raises("a timeout", DaytonaError, lambda: code.run_code("import time; time.sleep(60)", timeout=1))
    code.delete_context(context)
    raises("it is gone", DaytonaError, lambda: code.run_code("1", context=context))
    sandbox.delete()
    plain = daytona.create()
    raises("a template without kernels", DaytonaError, lambda: plain.code_interpreter.run_code("1"))
    plain.delete()
    print(f"daytona {version('daytona')} (Python): {checked()} checks of the code interpreter")


if __name__ == "__main__":
    main()
