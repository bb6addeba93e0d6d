# SPDX-License-Identifier: Apache-2.0
"""The sources as the gates `circles` and `shape` see them: modules, their includes, and the symbols of their objects.

A module is a pair of .c and .h with the same path (`common/base/log`); a file without its counterpart is one, too.
"""
from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections import defaultdict
from pathlib import Path

Graph = dict[str, dict[str, str]]
"""module -> the modules it needs, each with an example: the name of a header or of a symbol."""

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def module_of(path: str | Path) -> str:
    return str(Path(path).with_suffix(""))


def sources(top: Path, folders: list[str]) -> list[Path]:
    """The C files below these folders, as paths from the top."""
    found = [path.relative_to(top) for folder in folders for path in (top / folder).rglob("*.[ch]")]
    return sorted(path for path in found if path.parts[0] != "build")


def includes(top: Path, files: list[Path]) -> Graph:
    """The includes between modules."""
    known = {str(path) for path in files}
    graph: Graph = defaultdict(dict)
    for path in files:
        for name in _INCLUDE.findall((top / path).read_text()):
            for target in (name, str(path.parent / name)):
                if target in known and module_of(target) != module_of(path):
                    graph[module_of(path)].setdefault(module_of(target), name)
    return graph


def objects(build: Path, top: Path) -> dict[Path, list[Path]]:
    """source file, as a path from the top -> the object files that the build made of it."""
    found: dict[Path, list[Path]] = defaultdict(list)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source, words = Path(entry["directory"], entry["file"]), shlex.split(entry["command"])
        made = Path(entry["directory"], words[words.index("-o") + 1])
        if source.is_relative_to(top):
            assert made.exists(), f"{made} is missing: build first"
            found[source.relative_to(top)].append(made)
    return found


def symbols(made: list[Path]) -> dict[Path, tuple[set[str], set[str], set[str]]]:
    """object file -> the global functions it defines, all global symbols it defines, and the symbols it needs."""
    said = subprocess.run(["nm", "--print-file-name", "--extern-only", *made], capture_output=True, text=True,
                          check=True).stdout
    found: dict[Path, tuple[set[str], set[str], set[str]]] = {path: (set(), set(), set()) for path in made}
    for line in said.splitlines():
        path, _, rest = line.partition(":")
        *_, kind, name = rest.split()
        functions, defined, needed = found[Path(path)]
        if kind in "Uvw":
            needed.add(name)
        else:
            defined.add(name)
            if kind == "T":
                functions.add(name)
    return found


def calls(build: Path, top: Path, files: list[Path]) -> Graph:
    """The uses of symbols between modules (a call of a function, or its address)."""
    made = objects(build, top)
    module: dict[Path, str] = {path: module_of(source) for source in files for path in made.get(source, [])}
    table = symbols(list(module))
    home = {name: module[path] for path, (_, defined, _) in table.items() for name in defined}
    graph: Graph = defaultdict(dict)
    for path, (_, _, needed) in table.items():
        for name in sorted(needed & home.keys()):
            if home[name] != module[path]:
                graph[module[path]].setdefault(home[name], name)
    return graph


def folders(graph: Graph) -> Graph:
    """The same between folders."""
    found: Graph = defaultdict(dict)
    for user, targets in graph.items():
        for target, why in targets.items():
            one, other = str(Path(user).parent), str(Path(target).parent)
            if one != other:
                found[one].setdefault(other, f"{Path(user).name} -> {Path(target).name}: {why}")
    return found


def circles(graph: Graph) -> list[list[str]]:
    """One shortest circle for each group of nodes that all reach each other."""
    reach = {node: _reachable(graph, node) for node in graph}
    found, seen = [], set()
    for node in sorted(graph):
        if node in reach[node] and node not in seen:
            seen |= {other for other in reach[node] if node in reach.get(other, ())}
            found.append(_shortest(graph, node))
    return found


def _reachable(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    todo = list(graph.get(start, ()))
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += graph.get(node, ())
    return found


def _shortest(graph: Graph, start: str) -> list[str]:
    """The path from a node back to itself, with the node at both ends."""
    before: dict[str, str] = {}
    todo = [start]
    for node in todo:
        for target in graph.get(node, ()):
            if target == start:
                way = [start, node]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            if target not in before:
                before[target] = node
                todo.append(target)
    raise AssertionError(f"{start} is in no circle")


def describe(graph: Graph, circle: list[str]) -> str:
    """One line for each step of a circle."""
    return "\n".join(f"    {user} -> {target} ({graph[user][target]})" for user, target in zip(circle, circle[1:]))
