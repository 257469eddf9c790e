# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tells which Python libraries are missing, in one sentence."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence

from .._model.errors import TalosError

#: What to install for a package that is imported under another name.
DISTRIBUTIONS = {"yaml": "PyYAML", "grpc": "grpcio", "google.protobuf": "protobuf", "jinja2": "Jinja2"}


def require(packages: Sequence[str], module: str) -> None:
    """Raise `MissingLibrary` that names all of the packages that the interpreter does not have; imports none of them."""
    missing = [DISTRIBUTIONS.get(name, name) for name in packages if not present(name)]
    if missing:
        raise TalosError(
            "MissingLibrary", f"{module} needs the Python libraries {', '.join(missing)}, which {sys.executable} does not have.",
            f"Install them with: {sys.executable} -m pip install {' '.join(missing)}; or set ansible_python_interpreter "
            "to an interpreter that has them.")


def present(package: str) -> bool:
    """Whether the package can be found."""
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False
