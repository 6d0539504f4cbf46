#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the dmthin back end, and of images on it, in a guest that has a device mapper; those that take long
are in faults.

    conformance.py <images_tests> <registers library> [filter]
"""
import re
import sys

import uml

TIMEOUT = 900


def main():
    uml.skip_without_uml()
    chosen = sys.argv[3] if len(sys.argv) > 3 else "*/dmthin:DmthinPool.*-*AnInterruptedCall*:*ImageInASmallPool*"
    with uml.Guest(sys.argv[1], sys.argv[2]) as guest:
        command = f"{guest.program} --gtest_color=no --gtest_filter='{chosen}'"
        result, output = guest.run(command, ["dm-thin-pool", "loop"], TIMEOUT)
    print(output)
    passed = re.search(r"\[  PASSED  \] (\d+) test", output)
    if result != 0 or not passed or int(passed[1]) == 0:
        print("FAILED: the tests did not all pass in the guest")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
