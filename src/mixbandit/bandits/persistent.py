"""A persistent map from ids to values: changing it makes a new one that shares the unchanged parts.

A map is nested dicts that are never modified: (height, root), each node with up to 32 children by five bits of the id.
Adding, finding and removing take a handful of steps however many entries there are. Ids are added in increasing order,
so iterating over the dicts, which keep insertion order, visits them in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_BITS = 5
_MASK = (1 << _BITS) - 1

Map = tuple[int, dict[int, Any]]

EMPTY: Map = (0, {})


def put(tree: Map, key: int, value: Any) -> Map:
    """The map with an entry added or replaced; a new key must be larger than all others."""
    height, root = tree
    while key >> (_BITS * (height + 1)):
        height, root = height + 1, ({0: root} if root else {})
    return height, _put(root, key, value, _BITS * height)


def get(tree: Map, key: int) -> Any:
    """The value at a key, or None."""
    height, node = tree
    if key < 0 or key >> (_BITS * (height + 1)):
        return None
    for shift in range(_BITS * height, 0, -_BITS):
        node = node.get((key >> shift) & _MASK, {})
    return node.get(key & _MASK)


def drop(tree: Map, key: int) -> Map:
    """The map without a key, which may be missing."""
    height, root = tree
    if not root or key < 0 or key >> (_BITS * (height + 1)):
        return tree
    try:
        return height, _drop(root, key, _BITS * height)
    except KeyError:
        return tree


def values(tree: Map) -> Iterator[Any]:
    """All values, in the order of their keys."""
    return (value for _, value in items(tree))


def items(tree: Map) -> Iterator[tuple[int, Any]]:
    """All keys and values, in order."""
    return _items(tree[1], 0, tree[0])


def _put(node: dict[int, Any], key: int, value: Any, shift: int) -> dict[int, Any]:
    slot = (key >> shift) & _MASK
    if not shift:
        return {**node, slot: value}
    return {**node, slot: _put(node.get(slot, {}), key, value, shift - _BITS)}


def _drop(node: dict[int, Any], key: int, shift: int) -> dict[int, Any]:
    slot = (key >> shift) & _MASK
    new = dict(node)
    if shift:
        child = _drop(node[slot], key, shift - _BITS)
        if child:
            new[slot] = child
            return new
    del new[slot]
    return new


def _items(node: dict[int, Any], prefix: int, height: int) -> Iterator[tuple[int, Any]]:
    for slot, child in node.items():
        key = (prefix << _BITS) | slot
        if height:
            yield from _items(child, key, height - 1)
        else:
            yield key, child
