"""Turns the results of E2B's suites (JUnit XML and vitest's JSON) into a table by file. Prints passed/expected last."""

import collections
import json
import pathlib
import sys
import xml.etree.ElementTree as tree

results, table = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
# file -> [passed, failed, skipped], and the words of each failure
counts = collections.defaultdict(lambda: [0, 0, 0])
failures = collections.defaultdict(list)


def suite_of(report):
    """Reports are numbered: `python-1.xml`."""
    return report.stem.rsplit("-", 1)[0]


for report in sorted(results.glob("*.xml")):
    for case in tree.parse(report).iter("testcase"):
        file = f"{suite_of(report)} " + (case.get("classname") or case.get("name")).removeprefix("tests.").replace(".", "/")
        bad = [found for kind in ("failure", "error") for found in case.findall(kind)]
        if bad:
            counts[file][1] += 1
            failures[file].append((case.get("name"), (bad[0].get("message") or "").splitlines()[:1]))
        else:
            counts[file][2 if case.find("skipped") is not None else 0] += 1

# Files that look at the SDK's own defaults run in the first pass, without a server; what they say in the second one does not count.
alone = set()
for report in sorted(results.glob("*.json")):
    suites = [(f"{suite_of(report)} " + suite["name"].split("/tests/")[-1].removesuffix(".test.ts"), suite) for suite in json.loads(report.read_text())["testResults"]]
    before = frozenset(alone)
    alone.update(file for file, _ in suites)
    for file, suite in suites:
        if file in before:
            continue
        if not suite["assertionResults"] and suite["status"] == "failed":
            counts[file][1] += 1
            failures[file].append(("(the whole file)", suite.get("message", "").splitlines()[:1]))
        for case in suite["assertionResults"]:
            place = {"passed": 0, "failed": 1}.get(case["status"], 2)
            counts[file][place] += 1
            if place == 1:
                failures[file].append((case["title"], (case["failureMessages"] or [""])[0].splitlines()[:1]))

lines = ["| file | passed | failed | skipped |", "|---|---|---|---|"]
for file in sorted(counts):
    passed, failed, skipped = counts[file]
    lines.append(f"| {file} | {passed} | {failed} | {skipped} |")
lines.append("\n## Failures\n")
for file in sorted(failures):
    for name, words in failures[file]:
        lines.append(f"- {file}: {name}: {' '.join(words)[:200]}")
table.write_text("\n".join(lines) + "\n")

passed = sum(count[0] for count in counts.values())
expected = passed + sum(count[1] for count in counts.values())
print(f"conformance-e2b: the table is in {table}")
print(f"{passed}/{expected}")
sys.exit(0 if expected else 1)
