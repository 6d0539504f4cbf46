#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every path that docs/architecture.md names exists.

    architecture.py <root>
"""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
named = {name for name in re.findall(r"`([\w./*-]+)`", (root / "docs/architecture.md").read_text())
         if "/" in name}
missing = sorted(name for name in named if not any(root.glob(name.rstrip("/"))))
print("\n".join(f"docs/architecture.md names {name}, which does not exist" for name in missing))
print(f"{len(named)} paths, {len(missing)} missing")
# Finding no path at all would mean that this looks for the wrong thing.
sys.exit(1 if missing or len(named) < 20 else 0)
