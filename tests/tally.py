#!/usr/bin/env python3
"""tests/tally.py FILE...: adds up ctest's JUnit files and prints "PASSED FAILED SKIPPED".

A test that could not run says `skipped: <what is missing>` and passes as far as ctest knows: it counts as skipped here,
and what is missing is told on stderr.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

SKIPPED = re.compile(r"^.*skipped: .*$", re.MULTILINE)


def main():
    passed = failed = skipped = 0
    for path in sys.argv[1:]:
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            said = SKIPPED.search(case.findtext("system-out") or "")
            if case.get("status") == "fail":
                failed += 1
            elif said or case.get("status") != "run":
                skipped += 1
                print(f"{case.get('name')}: {said.group().strip() if said else case.get('status')}", file=sys.stderr)
            else:
                passed += 1
    print(passed, failed, skipped)


if __name__ == "__main__":
    main()
