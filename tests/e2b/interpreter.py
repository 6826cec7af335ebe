"""E2B's unmodified Python code interpreter SDK against a Belljar server: every language, result and context once.

Needs only the SDK, its environment variables and the template code-interpreter-v1. Ends with status 1 at the first difference.
"""

import importlib.metadata
import threading
import time

from e2b import NotFoundException, TimeoutException
from e2b_code_interpreter import Sandbox

from lab.checks import check, checked, raises

VERSION = importlib.metadata.version("e2b-code-interpreter")


def plain(box):
    seen = []
    run = box.run_code("import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7", on_stdout=seen.append, on_result=seen.append)
    check("its value", run.text, "42")
    check("its output", (run.logs.stdout, run.logs.stderr), (["out\n"], ["err\n"]))
    check("callbacks", [getattr(item, "line", None) or item.text for item in seen], ["out\n", "42"])
    count = run.execution_count
    check("runs are counted", box.run_code("kept = 1").execution_count, count + 1)
    check("state is kept", box.run_code("kept + 1").text, "2")
    check("a string without quotes", box.run_code("'a' + 'b'").text, "ab")
    failed = box.run_code("print('before')\nundefined_name")
    check("its error", (failed.error.name, failed.error.value), ("NameError", "name 'undefined_name' is not defined"))
    check("where", "undefined_name" in failed.error.traceback)
    check("a syntax error", box.run_code("echo 'a b'").error.name, "SyntaxError")
    check("a shell's line", box.run_code("!echo $((1 + 2))").logs.stdout[0].strip(), "3")
    check("a moved place", box.run_code("from pathlib import Path; str(Path.cwd())").text, "/home/user")
    check("await", box.run_code("import asyncio\nawait asyncio.sleep(0, 'waited')").text, "waited")
    check("files are the sandbox's", box.run_code("open('/home/user/made', 'w').write('x')").error, None)
    check("and read by the daemon", box.files.read("/home/user/made"), "x")


def results(box):
    table = box.run_code("import pandas as pd\npd.DataFrame({'a': [1, None], 'when': pd.to_datetime(['2024-01-02', '2024-01-03'])})").results[0]
    check("a table as data", table.data, {"a": [1.0, None], "when": ["2024-01-02T00:00:00", "2024-01-03T00:00:00"]})
    check("and as html", "<table" in table.html)
    check("a structure as JSON", box.run_code("{'a': [1, {'b': None}]}").results[0].json, {"a": [1, {"b": None}]})
    shown = box.run_code(
        "from IPython.display import HTML, SVG, JSON, Javascript, Latex, Markdown, display\n"
        "for item in (HTML('<b>b</b>'), Markdown('# m'), Latex('$x$'), Javascript('1'), SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')):\n    display(item)\n"
        "display({'application/pdf': 'JVBERi0=', 'x/y': 'z'}, raw=True)\n7"
    ).results
    check("html", shown[0].html, "<b>b</b>")
    check("markdown", shown[1].markdown, "# m")
    check("latex", shown[2].latex, "$x$")
    check("javascript", shown[3].javascript, "1")
    check("svg", shown[4].svg.startswith("<svg"))
    check("pdf and what has no field", (shown[5].pdf, shown[5].extra), ("JVBERi0=", {"x/y": "z"}))
    check("what is merely shown", [item.is_main_result for item in shown], [False] * 6 + [True])
    picture = box.run_code("from PIL import Image\nImage.new('RGB', (2, 2)).save('/home/user/p.png')").results[0]
    check("a picture that is saved is shown", picture.png.startswith("iVBOR") and bool(picture.jpeg))


CHARTS = {
    "line": "plt.plot([1, 2], [3, 4.5], label='l'); plt.xlabel('Time (s)'); plt.title('t')",
    "scatter": "plt.scatter([1, 2], [3, 4], label='s')",
    "bar": "plt.bar(['a', 'b'], [1, 2], label='g')",
    "pie": "plt.pie([1, 3], labels=['q', 'r'])",
    "box_and_whisker": "plt.boxplot([[1, 2, 3, 4, 20], [4, 5, 6]], tick_labels=['u', 'v'])",
    "superchart": "f, a = plt.subplots(1, 2); a[0].plot([1, 2]); a[1].scatter([1], [2]); f.suptitle('both')",
}


def charts(box):
    found = {}
    for kind, code in CHARTS.items():
        result = box.run_code(f"import matplotlib.pyplot as plt\n{code}\nplt.show()").results[0]
        check(f"a picture of a {kind} chart", result.png.startswith("iVBOR"))
        check(f"a {kind} chart", result.chart.type.value, kind)
        found[kind] = result.chart
    line = found["line"]
    check("a line", (line.title, line.x_unit, line.elements[0].label, line.elements[0].points), ("t", "s", "l", [(1.0, 3.0), (2.0, 4.5)]))
    check("points", found["scatter"].elements[0].points, [(1.0, 3.0), (2.0, 4.0)])
    check("bars", [(bar.label, bar.group, bar.value) for bar in found["bar"].elements], [("a", "g", 1.0), ("b", "g", 2.0)])
    check("slices", [(part.label, part.angle) for part in found["pie"].elements], [("q", 90.0), ("r", 270.0)])
    box0 = found["box_and_whisker"].elements[0]
    check("a box", (box0.label, box0.min, box0.median, box0.max, box0.outliers), ("u", 1.0, 3.0, 4.0, [20.0]))
    check("charts in a chart", [chart.type.value for chart in found["superchart"].elements], ["line", "scatter"])


LANGUAGES = {
    "javascript": [("const a = 5", None), ("a + 1", "6"), ("const a = 7; a", "7"), ("await Promise.resolve('w')", "w"), ("import { sep } from 'path'\nsep", "/")],
    "typescript": [("interface I { n: number }\nconst i: I = { n: 3 }", None), ("i.n", "3"), ("enum E { A = 4 }\nE.A", "4")],
    "r": [("x <- c(1, 2, 3)", None), ("mean(x)", "[1] 2")],
    "java": [("int n = 20;", None), ("n * 2 + 2", "42"), ("String s = \"j\";\ns", "j")],
}


def languages(box):
    for language, cells in LANGUAGES.items():
        for code, value in cells:
            run = box.run_code(code, language=language)
            check(f"{language}: {code}: no error", run.error, None)
            given = run.text if language != "r" or not run.results else run.results[0].text
            check(f"{language}: {code}", given, value)
    check("what JavaScript writes", box.run_code("console.log('c')", language="js").logs.stdout, ["c\n"])
    check("an error of JavaScript", box.run_code("throw new TypeError('no')", language="js").error.name, "TypeError")
    check("an error of Java", box.run_code("int q = \"a\";", language="java").error.name, "CompilationException")
    shell = box.run_code("cd /tmp; pwd; echo $((1 + 2))", language="bash")
    check("bash", "".join(shell.logs.stdout), "/tmp\n3\n")
    check("bash remembers", box.run_code("pwd", language="bash").logs.stdout, ["/tmp\n"])
    drawn = box.run_code("plot(1:3)", language="r").results
    check("a picture of R", any(result.png for result in drawn))
    raises("no such language", Exception, lambda: box.run_code("x", language="cobol"))


VARIABLE = {
    "python": "import os; os.getenv('GREETING', '')",
    "javascript": "process.env.GREETING || ''",
    "java": "System.getProperty(\"GREETING\", \"\")",
}


def variables(box):
    for language, code in VARIABLE.items():
        check(f"{language}: the sandbox's own variable", box.run_code(code, language=language).text, "hello")
        check(f"{language}: one run's", box.run_code(code, language=language, envs={"GREETING": "it's one"}).text, "it's one")
        check(f"{language}: as before", box.run_code(code, language=language).text, "hello")
    check("bash: one run's", box.run_code("echo \"$GREETING\"", language="bash", envs={"GREETING": "a 'b'"}).logs.stdout, ["a 'b'\n"])
    check("bash: as before", box.run_code("echo $GREETING", language="bash").logs.stdout, ["hello\n"])
    check("r: one run's", "one" in box.run_code("Sys.getenv('GREETING')", language="r", envs={"GREETING": "one"}).results[0].text)


def contexts(box):
    known = box.list_code_contexts()
    check("contexts that every sandbox has", {"python", "javascript"} <= {context.language for context in known})
    made = box.create_code_context(cwd="/tmp")
    check("its place", (made.language, made.cwd), ("python", "/tmp"))
    check("the newest is the last", box.list_code_contexts()[-1].id, made.id)
    box.run_code("own = 1", context=made)
    check("contexts do not share", box.run_code("own").error.name, "NameError")
    check("it works in its place", box.run_code("import os; os.getcwd()", context=made).text, "/tmp")
    box.restart_code_context(made.id)
    check("a restart forgets", box.run_code("own", context=made).error.name, "NameError")
    dead = box.run_code("import os; os.kill(os.getpid(), 9)", context=made)
    check("a kernel that dies", dead.error.name, "ContextRestarting")
    check("and is there again", box.run_code("1 + 1", context=made).text, "2")
    box.remove_code_context(made.id)
    check("it is gone", made.id in [context.id for context in box.list_code_contexts()], False)
    raises("code in it", NotFoundException, lambda: box.run_code("1", context=made))
    raises("a context nowhere", Exception, lambda: box.create_code_context(cwd="/nowhere"))


def time_and_end(box):
    box.run_code("kept = 'yes'")
    # The oldest SDK goes on waiting, whatever it is told.
    if VERSION != "2.9.1":
        raises("a client that waits no longer", TimeoutException, lambda: box.run_code("import time; time.sleep(300)", timeout=2))
    check("its code was interrupted, its state is there", box.run_code("kept", timeout=30).text, "yes")
    answers = [None] * 3

    def ask(number):
        answers[number] = box.run_code(f"import time; time.sleep(0.1); {number}").text

    askers = [threading.Thread(target=ask, args=[number]) for number in range(3)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    check("code at the same time takes turns", answers, ["0", "1", "2"])
    long = box.run_code("for number in range(20000): print('x' * 50)")
    check("much output", len("".join(long.logs.stdout)), 20000 * 51)
    killer = threading.Timer(2.0, box.kill)
    killer.start()
    error = raises("a sandbox that is killed under it", TimeoutException, lambda: box.run_code("import time; time.sleep(300)"))
    check("is said so", "killed" in str(error))
    killer.join()
    raises("nothing runs in it", Exception, lambda: box.run_code("1"))


def main():
    began = time.monotonic()
    box = Sandbox.create(timeout=280, envs={"GREETING": "hello"})
    try:
        plain(box)
        results(box)
        charts(box)
        languages(box)
        variables(box)
        contexts(box)
        time_and_end(box)
    finally:
        box.kill()
    print(f"e2b-code-interpreter {VERSION} (Python): {checked()} checks in {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()
