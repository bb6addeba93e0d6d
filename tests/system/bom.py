# SPDX-License-Identifier: Apache-2.0
"""Reads bills of materials (CycloneDX 1.5, JSON)."""
from __future__ import annotations

import json
import re
from typing import Any

#: The kinds of components that the standard knows.
TYPES = {"application", "framework", "library", "container", "platform", "operating-system", "device", "device-driver",
         "firmware", "file", "machine-learning-model", "data"}
ADDRESS = re.compile(r"pkg:[a-z]+/[\w.%/-]+@[\w.~%-]+(\?[a-z]+=[\w.-]+(&[a-z]+=[\w.-]+)*)?")


def _check_component(component: dict[str, Any]) -> None:
    assert component.keys() <= {"type", "bom-ref", "name", "version", "hashes", "licenses", "purl", "properties"}, component
    assert component["type"] in TYPES and component["name"] and component["version"], component
    assert ADDRESS.fullmatch(component["purl"]), component
    for entry in component.get("licenses", []):
        assert entry.keys() == {"license"} and len(entry["license"]) == 1, component
        assert entry["license"].get("id") or entry["license"].get("name"), component
    assert component.get("licenses") != [], component
    for entry in component.get("hashes", []):
        assert entry["alg"] == "SHA-256" and re.fullmatch("[0-9a-f]{64}", entry["content"]), component
    for entry in component.get("properties", []):
        assert entry.keys() == {"name", "value"} and entry["value"], component


def read(text: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The component that a bill is of, and those it is made of, by name. Checks what the standard requires."""
    bill = json.loads(text)
    assert bill.keys() == {"bomFormat", "specVersion", "version", "metadata", "components", "dependencies"}
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.5", 1)
    assert re.fullmatch(r"\d{4}(-\d\d){2}T\d\d(:\d\d){2}Z", bill["metadata"].get("timestamp", "2026-01-01T00:00:00Z"))
    whole, parts = bill["metadata"]["component"], bill["components"]
    for component in (whole, *parts):
        _check_component(component)
    references = [component["bom-ref"] for component in parts]
    assert len({*references, whole["bom-ref"]}) == len(parts) + 1, "each component has a reference of its own"
    assert bill["dependencies"] == [{"ref": whole["bom-ref"], "dependsOn": references}]
    return whole, {component["name"]: component for component in parts}
