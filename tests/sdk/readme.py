"""The examples in the Python SDK's papers, as they stand there: each paper's blocks, one after the other, as one program."""

import contextlib
import io
import re

from lab.checks import check, checked
from lab.server import ROOT

PAPERS = {
    "sdk/python/README.md": ["42\n", "hello\n oops\n 3\n", "a,b\n1,2\n ['data.csv']\n", "stdout 0 got one\n", "exited with 0\n", "40 120", "bytes of PNG\n", "ZeroDivisionError",
                             " before\n", "['0\\n', '1\\n', '2\\n']\n", "limits.pids limits.pids: expected"],
    "docs/guides/python.md": ["/ports/8000/proxy/\n200\n", "kept\n", "filtered\n"],
}


def main():
    for paper, expected in PAPERS.items():
        blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / paper).read_text(), re.MULTILINE | re.DOTALL)
        names, said = {"__name__": paper}, io.StringIO()
        with contextlib.redirect_stdout(said):
            for number, block in enumerate(blocks, 1):
                exec(compile(block, f"{paper}, block {number}", "exec"), names)
        for words in expected:
            check(f"{paper} says {words!r}, of {said.getvalue()!r}", words in said.getvalue())
    print(f"belljar (Python), its papers: {checked()} checks passed")


main()
