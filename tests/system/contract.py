# SPDX-License-Identifier: Apache-2.0
"""A description of an API (OpenAPI): every answer is held against it."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from http_client import Answer

METHODS = ("get", "post", "put", "patch", "delete")


class Contract:
    """The document, and the answers seen so far."""

    def __init__(self, document: Path) -> None:
        self.document = yaml.safe_load(document.read_text())
        self.seen: set[tuple[str, str, str, str]] = set()
        self._resolver = jsonschema.RefResolver("", self.document)

    def resolve(self, node: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in node:
            node = self._resolver.resolve(node["$ref"])[1]
        return node

    def validate(self, value: Any, schema: dict[str, Any], what: str) -> None:
        checker = jsonschema.Draft202012Validator(
            schema, resolver=self._resolver,
            format_checker=jsonschema.draft202012_format_checker)
        errors = [f"{error.json_path}: {error.message}" for error in checker.iter_errors(value)]
        assert not errors, f"{what}: {errors[:3]} in {value}"

    def strange(self, value: Any, schemas: list[dict[str, Any]], where: str = "$") -> list[str]:
        """The members of a value, and of what is in it, that none of its schemas has: a schema takes any that it does
        not forbid."""
        parts, todo, found = [], list(schemas), []
        while todo:
            parts.append(self.resolve(todo.pop()))
            todo += [part for kind in ("allOf", "oneOf", "anyOf") for part in parts[-1].get(kind, [])]
        if isinstance(value, list):
            items = [part["items"] for part in parts if "items" in part]
            return [name for i, inner in enumerate(value) for name in self.strange(inner, items, f"{where}[{i}]")]
        for name, inner in value.items() if isinstance(value, dict) else ():
            others = [part["additionalProperties"] for part in parts if "additionalProperties" in part]
            known = [part["properties"][name] for part in parts if name in part.get("properties", {})]
            known = known or [each if isinstance(each, dict) else {} for each in others if each is not False]
            if known or not any("properties" in part for part in parts):
                found += self.strange(inner, known, f"{where}.{name}")
            else:
                found.append(f"{where}.{name}")
        return found

    def path_of(self, path: str) -> str | None:
        """The documented path that matches. Paths without parameters come first."""
        for template in sorted(self.document["paths"], key=lambda t: (t.count("{"), t)):
            if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)), path):
                return template
        return None

    def check(self, method: str, target: str, answer: Answer) -> None:
        template = self.path_of(target.partition("?")[0])
        what = f"{method} {target} -> {answer.status}"
        if template is None:
            assert answer.status == 404, what
            return
        item = self.document["paths"][template]
        if method == "HEAD" and answer.status == 200:
            assert "get" in item and not answer.body, what
            return
        if answer.status == 405:
            # No operation has this method. Every operation of the path documents the answer.
            operation = next(item[name] for name in METHODS if name in item)
        else:
            assert method.lower() in item, f"{what}: no such operation"
            operation = item[method.lower()]
        responses = operation["responses"]
        name = str(answer.status) if str(answer.status) in responses else "default"
        assert name in responses and (name != "default" or answer.status >= 400), f"{what} is not documented"
        response = self.resolve(responses[name])
        for name, header in response.get("headers", {}).items():
            header = self.resolve(header)
            given = answer.headers.get(name.lower())
            assert given is not None or not header.get("required"), f"{what}: no {name}"
            if given is not None:
                self.validate(given, header["schema"], f"{what}, {name}")
        kind = self._check_body(response, answer, what)
        self.seen.add((operation["operationId"], str(answer.status), *kind))

    def _check_body(self, response: dict[str, Any], answer: Answer, what: str) -> tuple[str, str]:
        media = answer.headers.get("content-type", "").partition(";")[0]
        content = response.get("content", {})
        if not content:
            assert not answer.body, f"{what}: an undocumented body"
            return "", ""
        assert media in content, f"{what}: {media} is not documented"
        schema = content[media].get("schema")
        value: Any = answer.body.decode("utf-8", "replace")
        if media.endswith("json"):
            value = json.loads(value)
        if schema is not None:
            self.validate(value, schema, what)
        if media == "application/problem+json":
            assert value["status"] == answer.status, what
            return media, value["type"]
        return media, ""

    def documented(self) -> set[tuple[str, str, str, str]]:
        """Every operation, status, media type and, of problems, type."""
        found = set()
        for item in self.document["paths"].values():
            for operation in (item[name] for name in METHODS if name in item):
                for status, response in operation["responses"].items():
                    response = self.resolve(response)
                    name = operation["operationId"]
                    for media, content in (response.get("content") or {"": {}}).items():
                        for kind in self._problem_types(content.get("schema", {})) or [""]:
                            found.add((name, status, media, kind))
        return found

    def bodies(self) -> dict[tuple[str, str], tuple[list[Any], dict[str, Any]]]:
        """The examples and the schema of every JSON body, by operation and "request" or the status of a success."""
        found = {}
        for item in self.document["paths"].values():
            for operation in (item[name] for name in METHODS if name in item):
                asked = {"request": operation["requestBody"]} if "requestBody" in operation else {}
                given = {status: response for status, response in operation["responses"].items() if status[0] == "2"}
                for part, body in (asked | given).items():
                    for media, content in self.resolve(body).get("content", {}).items():
                        if media.endswith("json"):
                            named = [self.resolve(each)["value"] for each in content.get("examples", {}).values()]
                            single = [content["example"]] if "example" in content else []
                            found[operation["operationId"], part] = single + named, content["schema"]
        return found

    def _problem_types(self, schema: dict[str, Any]) -> list[str]:
        for part in schema.get("allOf", []):
            kinds = part.get("properties", {}).get("type", {}).get("enum")
            if kinds:
                return kinds
        return []
