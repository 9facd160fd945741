#!/usr/bin/env python3
"""Says what the program is made of, and under which licences.

    deploy/release/sbom.py --build FOLDER --page FOLDER --version V --commit C --sbom FILE
                           --licences FOLDER

Writes a bill of materials (CycloneDX 1.5, JSON) of the Debian packages whose archives were linked
into the program and whose headers were compiled into it, of the packages of npm that the dashboard
is made of, and their licences as whole texts. Read from the linker's map, the compiler's
dependencies and what web/build.mjs has written, so that nothing is forgotten; a package that
LICENCES does not know, or of npm one that PAGE_LICENCES does not, ends it.
"""

import argparse
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import uuid
from pathlib import Path

# By source package, in SPDX's words, as /usr/share/doc/PACKAGE/copyright has them.
LICENCES = {
    "abseil": "Apache-2.0",
    "boost1.81": "BSL-1.0",
    "c-ares": "MIT",
    "cli11": "BSD-3-Clause",
    "eigen3": "MPL-2.0",
    "expat": "MIT",
    "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "gcc-12-cross": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "grpc": "Apache-2.0",
    "libyaml": "MIT",
    "musl": "MIT",
    "nlohmann-json3": "MIT",
    "openssl": "Apache-2.0",
    "protobuf": "BSD-3-Clause",
    "re2": "BSD-3-Clause",
    "sqlite3": "LicenseRef-public-domain",
    "zlib": "Zlib",
}
PAGE_LICENCES = {"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}
# Their headers describe libraries that the program does not hold: the C library and the kernel, and
# what is opened where it is installed.
ELSEWHERE = {"cross-toolchain-base", "glibc", "linux", "curl", "postgresql-15"}
# Of tests and tools, whose headers no file of the program includes.
OBJECTS = re.compile(r"^CMakeFiles/(core|cmd|proto|v3|shirabe)\.dir/")


def output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def linked(build: Path) -> set[str]:
    """Archives of which at least one member is in the program."""
    found = set()
    with open(build / "bin" / "shirabe.map", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith(("Memory Configuration", "Discarded input sections")):
                break
            member = re.match(r"(/\S+\.a)\(", line)
            if member:
                found.add(os.path.realpath(member[1]))
    return found


def included(build: Path) -> set[str]:
    found, ours = set(), False
    for line in output("ninja", "-C", str(build), "-t", "deps").splitlines():
        if line and not line.startswith(" "):
            ours = bool(OBJECTS.match(line))
        elif ours and line.strip().startswith("/usr/"):
            found.add(os.path.realpath(line.strip()))
    return found


def musl(build: Path) -> set[str]:
    """What the supervisor is linked with, which the program carries."""
    found = glob.glob("/usr/lib/*-linux-musl/libc.a")
    compiler = re.search("^MUSL_GCC:FILEPATH=/", (build / "CMakeCache.txt").read_text(), re.M)
    if compiler is None or not found:
        sys.exit("sbom.py: the supervisor was not linked with musl: install musl-tools")
    return set(found)


def owners(paths: set[str]) -> dict[str, set[str]]:
    """The Debian packages that these files are of, with the archives among the files."""
    if not paths:
        sys.exit("sbom.py: the build names no file; build it first, with ninja")
    found: dict[str, set[str]] = {}
    text = subprocess.run(["dpkg-query", "-S", *sorted(paths)], capture_output=True,
                          text=True, check=False).stdout
    left = set(paths)
    for line in text.splitlines():
        names, _, path = line.partition(": ")
        left.discard(path)
        for name in names.split(", "):
            found.setdefault(name, set())
            if path.endswith(".a"):
                found[name].add(os.path.basename(path))
    if left:
        sys.exit(f"sbom.py: no package owns {sorted(left)[:5]}: say in sbom.py what it is")
    return found


def components(build: Path) -> list[dict]:
    """One for each source package, ascending by name."""
    packages = owners(linked(build) | included(build) | musl(build))
    merged: dict[str, dict] = {}
    for package, archives in packages.items():
        fields = "${source:Package}\t${source:Version}\t${Homepage}"
        source, version, homepage = output("dpkg-query", "-W", "-f", fields, package).split("\t")
        if source in ELSEWHERE:
            continue
        if source not in LICENCES:
            sys.exit(f"sbom.py: {package} (source {source}) is in the program: add its licence")
        entry = merged.setdefault(source, {"version": version, "homepage": homepage,
                                           "packages": set(), "archives": set()})
        entry["packages"].add(package.split(":")[0])
        entry["archives"] |= archives
    return [{"source": name, **merged[name]} for name in sorted(merged)]


def page_packages(page: Path) -> list[dict]:
    """What the built files of the dashboard hold, as web/build.mjs has written it down."""
    listed = json.loads((page / "packages.json").read_text(encoding="utf-8"))
    for entry in listed:
        if entry["license"] not in PAGE_LICENCES:
            sys.exit(f"sbom.py: {entry['name']} is in the dashboard under {entry['license']}: "
                     "add that to PAGE_LICENCES if the program may hold it")
    return listed


def page_component(entry: dict) -> dict:
    purl = f"pkg:npm/{entry['name'].replace('@', '%40')}@{entry['version']}"
    return {"type": "library", "bom-ref": purl, "name": entry["name"],
            "version": entry["version"], "licenses": [{"license": {"id": entry["license"]}}],
            "purl": purl, "properties": [{"name": "shirabe:linkage", "value": "dashboard"}]}


def licence(source: str) -> dict:
    text = LICENCES[source]
    if text.startswith("LicenseRef-"):
        return {"license": {"name": text.removeprefix("LicenseRef-").replace("-", " ")}}
    return {"expression": text} if " " in text else {"license": {"id": text}}


def component(entry: dict) -> dict:
    name, version = entry["source"], entry["version"]
    linkage = "static library" if entry["archives"] else "headers"
    properties = [{"name": "shirabe:linkage", "value": linkage}]
    properties += [{"name": "shirabe:archive", "value": a} for a in sorted(entry["archives"])]
    purl = f"pkg:deb/debian/{name}@{version.replace('+', '%2B')}?arch=source"
    fields = {"type": "library", "bom-ref": purl, "name": name, "version": version,
              "licenses": [licence(name)], "purl": purl, "properties": properties}
    if entry["homepage"]:
        fields["externalReferences"] = [{"type": "website", "url": entry["homepage"]}]
    return fields


def bill(args: argparse.Namespace, entries: list[dict], page: list[dict]) -> str:
    own = f"pkg:generic/shirabe@{args.version}"
    listed = [component(entry) for entry in entries] + [page_component(entry) for entry in page]
    stamp = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))
    root = {"type": "application", "bom-ref": own, "name": "shirabe", "version": args.version,
            "licenses": [{"license": {"id": "Apache-2.0"}}], "purl": own,
            "properties": [{"name": "shirabe:commit", "value": args.commit}]}
    fields = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
              "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", stamp),
                           "component": root},
              "components": listed,
              "dependencies": [{"ref": own, "dependsOn": [c["bom-ref"] for c in listed]}]}
    # Random in most of them; here by the content, so that the same program has the same bill.
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).digest()
    serial = uuid.UUID(bytes=digest[:16], version=4)
    return json.dumps({**fields, "serialNumber": f"urn:uuid:{serial}"}, indent=1) + "\n"


def without_file_lists(text: str) -> str:
    """A copyright file of Debian's without the names of the sources that each part is for, which
    say nothing of a program and are 2 MB for Boost; and so each part once."""
    parts = []
    for part in text.split("\n\n"):
        lines, skipping = [], False
        for line in part.splitlines():
            skipping = line.startswith("Files:") or (skipping and line.startswith((" ", "\t")))
            if not skipping:
                lines.append(line)
        parts.append("\n".join(lines))
    return "\n\n".join(dict.fromkeys(parts))


def titled(title: str, text: str) -> str:
    return f"\n{'=' * 80}\n{title}\n{'=' * 80}\n\n{text}"


def licence_texts(entries: list[dict], page: list[dict]) -> str:
    parts = ["The program shirabe holds these libraries, each under its own licence.\n"]
    for entry in entries:
        package = sorted(entry["packages"])[0]
        text = Path(f"/usr/share/doc/{package}/copyright").read_text(encoding="utf-8")
        parts.append(titled(f"{entry['source']} {entry['version']}", without_file_lists(text)))
    parts += [titled(f"{entry['name']} {entry['version']}", entry["text"]) for entry in page]
    return "".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("build", "page", "sbom", "licences"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("version", "commit"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    entries = components(args.build)
    page = page_packages(args.page)
    args.sbom.write_text(bill(args, entries, page), encoding="utf-8")
    args.licences.mkdir(parents=True, exist_ok=True)
    (args.licences / "THIRD-PARTY.txt").write_text(licence_texts(entries, page), encoding="utf-8")
    own = Path(__file__).resolve().parents[2] / "LICENSE"
    (args.licences / "LICENSE").write_bytes(own.read_bytes())


main()
