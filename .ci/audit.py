"""Known vulnerabilities of the packages beside this Python: `python .ci/audit.py PIP_AUDIT`.

Exits with 1 if a package that `mixbandit[all]` installs has one that a newer version fixes. Others, of developers'
tools or without a fix, are printed only. If no vulnerability index answers, that is printed, and nothing fails.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

SERVICES = ("pypi", "osv")
PATIENCE = 180.0  # seconds for each of them
NOT_AUDITED = "NOT AUDITED: the vulnerability index did not answer"


def asked(pip_audit: str, service: str) -> list[dict[str, Any]]:
    """What a service says of every package; nothing if it does not answer."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        where = [part for name in ("purelib", "platlib") for part in ("--path", sysconfig.get_path(name))]
        options = [
            "--vulnerability-service",
            service,
            "--timeout",
            "10",
            "--progress-spinner",
            "off",
            "--skip-editable",
        ]
        command = [pip_audit, *options, *where, "--format", "json", "--output", str(report)]
        try:
            subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
            found: list[dict[str, Any]] = json.loads(report.read_text())["dependencies"]
        except (subprocess.TimeoutExpired, OSError, ValueError):
            return []
    return found


def installed_with(package: str, extra: str = "") -> set[str]:
    """The names of a package and of all that it requires with this extra."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    found: set[str] = set()
    waiting, seen = [(package, extra)], set()
    while waiting:
        name, extra = waiting.pop()
        seen.add((name, extra))
        found.add(canonicalize_name(name))
        try:
            texts = metadata.requires(name) or []
        except metadata.PackageNotFoundError:  # for another system or Python
            continue
        for needed in map(Requirement, texts):
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                waiting += [(needed.name, of) for of in ("", *needed.extras) if (needed.name, of) not in seen]
    return found


def verdict(packages: list[dict[str, Any]], users: set[str]) -> tuple[int, list[str]]:
    """An exit code, and what to print. A package that the service does not know has a `skip_reason`, and no `vulns`."""
    audited = [package for package in packages if "vulns" in package]
    if not audited:
        return 0, [NOT_AUDITED]
    code, lines = 0, [f"{len(audited)} packages audited."]
    unknown = sorted(
        package["name"] for package in packages if "vulns" not in package and package["name"] != "mixbandit"
    )
    if unknown:
        lines.append(f"NOT AUDITED: {', '.join(unknown)}")
    for package in audited:
        for flaw in package["vulns"]:
            fails = package["name"] in users and bool(flaw["fix_versions"])
            code = max(code, int(fails))
            fixed = f"fixed in {', '.join(flaw['fix_versions'])}" if flaw["fix_versions"] else "no fix"
            lines.append(
                f"{'VULNERABLE' if fails else 'vulnerable, does not fail'}: {package['name']} {package['version']}, "
                f"{flaw['id']}, {fixed}"
            )
    return code, lines


def main(pip_audit: str) -> int:
    packages: list[dict[str, Any]] = []
    for service in SERVICES:
        packages = asked(pip_audit, service)
        if any("vulns" in package for package in packages):
            break
    code, lines = verdict(packages, installed_with("mixbandit", "all"))
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
