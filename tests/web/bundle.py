#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that web/dist is what its sources give, that it is small, and that it needs nothing from elsewhere.

    bundle.py <root>                       without Node: by the recorded digest of the sources
    bundle.py <root> --rebuild <build>     builds it anew below the build directory, compares, and runs the tests
                                           of its logic beside this file; ends with 77 where npm is absent
"""
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

MOST_BYTES = 120 * 1024
SKIPPED = 77
PATIENCE = 240
UNREACHABLE = r"ENOTFOUND|EAI_AGAIN|ECONN|ETIMEDOUT|ENETUNREACH|ERR_SOCKET"
TOP = ["index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts"]
UNITS = ["src/flow.ts", "src/format.ts"]
ADVICE = "run `npm ci --ignore-scripts && npm run build` in web/ and commit web/dist"


def digest_of_sources(web):
    """The same as web/scripts/pack.js records."""
    below = [path.relative_to(web).as_posix() for folder in ("public", "src") for path in (web / folder).rglob("*")
             if path.is_file()]
    digest = hashlib.sha256()
    for name in sorted(TOP + below):
        digest.update(name.encode() + b"\0" + (web / name).read_bytes() + b"\0")
    return digest.hexdigest()


def contents(dist):
    return {path.relative_to(dist).as_posix(): gzip.decompress(path.read_bytes()) for path in sorted(dist.rglob("*.gz"))}


def check_recorded(web):
    dist = web / "dist"
    if (dist / "sources.sha256").read_text(encoding="utf-8").strip() != digest_of_sources(web):
        yield f"web/dist was not made from the present sources; {ADVICE}"
    size = sum(path.stat().st_size for path in dist.rglob("*.gz"))
    if size > MOST_BYTES:
        yield f"web/dist has {size} bytes, compressed; the limit is {MOST_BYTES}"
    files = contents(dist)
    page = files["index.html.gz"].decode()
    if re.search(r"<style|style=|<script(?![^>]*\bsrc=)|\son\w+=", page):
        yield "index.html has a script or style of its own, which the content security policy forbids"
    for name in re.findall(r'(?:src|href)="/([^"]+)"', page):
        if name + ".gz" not in files:
            yield f"index.html names {name}, which is not in web/dist"
    for name, content in files.items():
        # Names of XML vocabularies are no addresses that anybody asks.
        for address in re.findall(rb"https?://(?!www\.w3\.org/)[\w.-]+", content):
            if name != "licenses.txt.gz":
                yield f"{name} names another server: {address.decode()}"
    if b'"resolved"' in (web / "package-lock.json").read_bytes():
        yield "package-lock.json says where packages come from; that is the registry's business (see web/.npmrc)"


def rebuild(web, place):
    if not (shutil.which("node") and shutil.which("npm")):
        print("SKIPPED: npm is not installed; scripts/setup installs it")
        sys.exit(SKIPPED)
    place.mkdir(parents=True, exist_ok=True)
    for name in TOP + [".npmrc"]:
        shutil.copy(web / name, place / name)
    for folder in ("public", "src", "scripts"):
        shutil.rmtree(place / folder, ignore_errors=True)
        shutil.copytree(web / folder, place / folder)
    installed = place / "node_modules" / "installed"
    lock = (web / "package-lock.json").read_text(encoding="utf-8")
    if not installed.is_file() or installed.read_text(encoding="utf-8") != lock:
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=place, check=False,
                              capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode != 0 and re.search(UNREACHABLE, done.stderr):
            print(f"SKIPPED: npm does not reach its registry\n{done.stderr}")
            sys.exit(SKIPPED)
        if done.returncode != 0:
            yield f"npm cannot install what web/package-lock.json lists:\n{done.stdout}{done.stderr}"
            return
        installed.write_text(lock, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PAWL_WEB_")}
    done = subprocess.run(["npm", "run", "build"], cwd=place, env=environment, check=False, capture_output=True,
                          text=True, timeout=PATIENCE)
    if done.returncode != 0:
        yield f"the dashboard cannot be built:\n{done.stdout}{done.stderr}"
        return
    committed, built = contents(web / "dist"), contents(place / "dist")
    for name in sorted(committed.keys() | built.keys()):
        if committed.get(name) != built.get(name):
            yield f"{name} in web/dist is not what building gives; {ADVICE}"
    yield from run_units(place)


def run_units(place):
    """The tests use what needs no page, as plain JavaScript."""
    units = place / "units"
    for file in pathlib.Path(__file__).parent.glob("*.test.js"):
        units.mkdir(exist_ok=True)
        shutil.copy(file, units / file.name)
    for command in (["node_modules/.bin/esbuild", *UNITS, "--bundle", "--format=esm", "--outdir=units", "--log-level=warning"],
                    ["node", "--test", "--test-reporter=spec", "units"]):
        done = subprocess.run(command, cwd=place, check=False, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode != 0:
            yield f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}"


def main():
    web = pathlib.Path(sys.argv[1]).resolve() / "web"
    if sys.argv[2:3] == ["--rebuild"]:
        findings = list(rebuild(web, pathlib.Path(sys.argv[3]) / "web"))
    else:
        findings = list(check_recorded(web))
    print("\n".join(findings) or "web/dist is what its sources give")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
