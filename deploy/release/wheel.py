#!/usr/bin/env python3
"""Makes the wheel of PyPI: the program, `shirabe` and `shirabe_client` in one file.

    deploy/release/wheel.py --program FILE --tag TAG --licences FOLDER --sbom FILE --out FOLDER

The program goes where pip puts scripts, so that it is on the PATH of the environment. What stands
in sdk/python/pyproject.toml is the metadata. Written here and not by a build backend, because two
runs give the same bytes: names in order, the time of $SOURCE_DATE_EPOCH, no owner. Prints the path
of the wheel.
"""

import argparse
import base64
import hashlib
import os
import sys
import time
import tomllib
import zipfile
from pathlib import Path

SDK = Path(__file__).resolve().parents[2] / "sdk" / "python"
Files = dict[str, tuple[bytes, int]]  # by the name in the archive: what, and its mode


def packages(project: dict) -> Files:
    files: Files = {}
    for package in project["tool"]["setuptools"]["packages"]:
        folder = SDK / package.replace(".", "/")
        for path in [*folder.glob("*.py"), *folder.glob("py.typed")]:
            files[str(path.relative_to(SDK))] = (path.read_bytes(), 0o644)
    unnamed = {str(path.relative_to(SDK)) for path in SDK.glob("shirabe*/**/*.py")} - files.keys()
    if unnamed:
        sys.exit(f"wheel.py: {sorted(unnamed)} are in no package that pyproject.toml names")
    return files


def metadata(project: dict, licences: list[str]) -> bytes:
    about = project["project"]
    lines = ["Metadata-Version: 2.4", f"Name: {about['name']}", f"Version: {about['version']}"]
    lines += [f"Summary: {about['description']}", f"License-Expression: {about['license']}"]
    lines += [f"License-File: {name}" for name in licences]
    lines += [f"Classifier: {text}" for text in about["classifiers"]]
    lines += [f"Requires-Python: {about['requires-python']}"]
    lines += ["Description-Content-Type: text/markdown", ""]
    return "\n".join(lines).encode() + b"\n" + (SDK / "README.md").read_bytes()


def record(files: Files, own: str) -> bytes:
    lines = []
    for name, (data, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}")
    return "\n".join([*lines, f"{own},,", ""]).encode()


def write(path: Path, files: Files) -> None:
    # The format knows no year before 1980, and no time zone.
    epoch = max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, (data, mode) in sorted(files.items()):
            info = zipfile.ZipInfo(name, time.gmtime(epoch)[:6])
            info.external_attr = (0o100000 | mode) << 16
            info.create_system = 3
            info.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(info, data, compresslevel=9)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("program", "licences", "sbom", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("tag", "version"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    project = tomllib.loads((SDK / "pyproject.toml").read_text())
    version = project["project"]["version"]
    if version != args.version:
        sys.exit(f"wheel.py: sdk/python/pyproject.toml has version {version}, not {args.version}")
    stem = f"shirabe-{version}"
    files = packages(project)
    files[f"{stem}.data/scripts/shirabe"] = (args.program.read_bytes(), 0o755)
    info = f"{stem}.dist-info"
    licences = sorted(path.name for path in args.licences.iterdir())
    for name in licences:
        files[f"{info}/licenses/{name}"] = ((args.licences / name).read_bytes(), 0o644)
    files[f"{info}/sboms/{args.sbom.name}"] = (args.sbom.read_bytes(), 0o644)
    files[f"{info}/METADATA"] = (metadata(project, licences), 0o644)
    tag = "\n".join(["Wheel-Version: 1.0", "Generator: deploy/release/wheel.py",
                     "Root-Is-Purelib: false", f"Tag: {args.tag}", ""])
    files[f"{info}/WHEEL"] = (tag.encode(), 0o644)
    files[f"{info}/RECORD"] = (record(files, f"{info}/RECORD"), 0o644)
    path = args.out / f"{stem}-{args.tag}.whl"
    write(path, files)
    print(path)


if __name__ == "__main__":
    main()
