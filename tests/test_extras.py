"""Every extra installs by itself and imports, with the newest versions that pyproject.toml allows.

Needs a network and several GB; run by hand: `pytest -m install tests/test_extras.py`, one extra with `-k 'extra[ray]'`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]

# Import each top-level module of the packages and print failures. setuptools lists a module only for its own start;
# before Python 3.12, packages_distributions lacks packages of one compiled file.
IMPORTS = """
import importlib, inspect, json, sys
from importlib.metadata import distribution, packages_distributions
wanted = {name.lower().replace("_", "-") for name in sys.argv[1:]}
modules = {}
for module, names in packages_distributions().items():
    for name in names:
        if name.lower().replace("_", "-") in wanted and module.isidentifier() and not module.startswith("_"):
            modules.setdefault(name.lower().replace("_", "-"), []).append(module)
for name in wanted - modules.keys():
    alone = {inspect.getmodulename(file.name) for file in distribution(name).files if len(file.parts) == 1} - {None}
    modules |= {name: sorted(alone)} if alone else {}
failed = {name: "installs no module" for name in wanted - modules.keys()}
for name, found in modules.items():
    for module in found:
        try:
            importlib.import_module(module)
        except BaseException as error:
            failed[f"{name}: {module}"] = repr(error)
print(json.dumps([failed, modules]))
"""


def packages(extra: str) -> list[str]:
    """The packages that an extra names, and the two of the core that must match."""
    results = ["torch", "torchaudio"]
    for requirement in map(Requirement, EXTRAS[extra]):
        if requirement.name == PROJECT["name"]:
            results += [name for other in sorted(requirement.extras) for name in packages(other)]
        elif requirement.marker is None or requirement.marker.evaluate():
            results.append(requirement.name)
    return list(dict.fromkeys(results))


def execute(*command: object) -> str:
    """Runs a command and returns what it printed; what it wrote is the failure's message."""
    hidden = ("VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run([str(item) for item in command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.install
@pytest.mark.parametrize("extra", EXTRAS)
def test_extra(extra, tmp_path):
    from uv import find_uv_bin

    uv, environment = find_uv_bin(), tmp_path / "env"
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    try:
        execute(uv, "venv", "--python", sys.executable, environment)
        execute(uv, "pip", "install", "--python", python, "--editable", f"{ROOT}[{extra}]")
        execute(uv, "pip", "check", "--python", python)
        failed, modules = json.loads(execute(python, "-P", "-c", IMPORTS, *packages(extra)).splitlines()[-1])
        assert not failed, f"of {modules}"
        execute(python.with_name("codec-bench"), "doctor")
    finally:
        shutil.rmtree(environment, ignore_errors=True)  # several GB where links into uv's cache cannot be made
