"""Mappings as TOML, so that a scenario of objects can be read, shown and kept like any other."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from suimon.errors import InputError


def document(keys: Mapping[str, object]) -> str:
    """A document with these keys: plain ones first, then a section for each table."""
    plain, sections = "", ""
    for key, content in keys.items():
        if isinstance(content, Mapping):
            sections += f"\n[{name(key)}]\n{_lines(content)}"
        elif tables := _tables(content):
            sections += "".join(f"\n[[{name(key)}]]\n{_lines(each)}" for each in tables)
        else:
            plain += f"{name(key)} = {value(key, content)}\n"
    return plain + sections


def _tables(content: object) -> list[Mapping[str, object]]:
    """The tables that ``content`` lists; empty where it is anything else."""
    if not isinstance(content, Sequence) or isinstance(content, str):
        return []
    tables = [each for each in content if isinstance(each, Mapping)]
    return tables if len(tables) == len(content) else []


def _lines(table: Mapping[str, object]) -> str:
    return "".join(f"{name(key)} = {value(key, content)}\n" for key, content in table.items())


def name(key: object) -> str:
    """A key, quoted where it has to be."""
    if not isinstance(key, str) or not key:
        raise InputError(f"{key!r}: is no key; accepted: text")
    plain = all(c.isascii() and (c.isalnum() or c in "_-") for c in key)
    return key if plain else json.dumps(key, ensure_ascii=False)


def value(key: str, content: object) -> str:
    """A value, tables within it in one line."""
    if isinstance(content, bool):
        return "true" if content else "false"
    if isinstance(content, (int, float)):
        return str(content)
    if isinstance(content, str):
        return json.dumps(content, ensure_ascii=False)
    if isinstance(content, Mapping):
        return "{ " + ", ".join(f"{name(k)} = {value(k, v)}" for k, v in content.items()) + " }"
    if isinstance(content, Sequence):
        return "[" + ", ".join(value(key, each) for each in content) + "]"
    raise InputError(f"{key}: {content!r} is a {type(content).__name__}; accepted: text, numbers, lists, mappings")
