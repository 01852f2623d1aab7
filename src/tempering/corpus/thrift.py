"""As much of Thrift's compact protocol as the footer and the pages of a Parquet file need.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, STRUCT = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12)
LENGTHS = {BYTE: 1, DOUBLE: 8}
DEEPEST = 16


def field(number: int, kind: int) -> int:
    """The key of a field: a field of another type than it should have is none."""
    return number << 4 | kind


class Compact:
    """Reads structures: the whole numbers, structures and lists that are wanted, and no others.

    ``IndexError`` where the text ends too early, ``ValueError`` where it cannot be right.

    Parameters
    ----------
    text : bytes
        Where the structure begins.

    Attributes
    ----------
    place : int
        How much of the text was read.
    """

    def __init__(self, text: bytes):
        self.text = text
        self.place = 0

    def struct(self, wanted: dict[int, Any], depth: int = 0) -> dict[int, Any]:
        """The wanted fields, by their keys; ``wanted`` has those of the structures within."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            step, kind = head >> 4, head & 15
            number = number + step if step else self._signed()
            key = field(number, kind)
            value = self._value(kind, wanted.get(key) or {}, depth + 1)
            if key in fields:
                raise ValueError("a field comes twice")
            if key in wanted:
                fields[key] = value
        return fields

    def _value(self, kind: int, wanted: dict[int, Any], depth: int) -> Any:
        if depth > DEEPEST:
            raise ValueError("nested too deep")
        if kind in (TRUE, FALSE):
            return None
        if kind in (I16, I32, I64):
            return self._signed()
        if kind == STRUCT:
            return self.struct(wanted, depth)
        if kind == LIST:
            return self._list(wanted, depth)
        length = self._number() if kind == BINARY else LENGTHS.get(kind)
        if length is None:
            raise ValueError(f"a field is of the type {kind}")
        self._skip(length)
        return None

    def _list(self, wanted: dict[int, Any], depth: int) -> list[Any]:
        """The parts, if something of them is wanted."""
        head = self._byte()
        length, kind = head >> 4, head & 15
        if length == 15:
            length = self._number()
        if kind in (TRUE, FALSE):
            self._skip(length)
            length = 0
        parts = []
        for _ in range(length):
            part = self._value(kind, wanted, depth + 1)
            if wanted:
                parts.append(part)
        return parts

    def _skip(self, length: int) -> None:
        self.place += length
        if self.place > len(self.text):
            raise IndexError

    def _byte(self) -> int:
        byte = self.text[self.place]
        self.place += 1
        return byte

    def _number(self) -> int:
        """A number without a sign, seven bits a byte, the lowest first."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number is too long")

    def _signed(self) -> int:
        number = self._number()
        return (number >> 1) ^ -(number & 1)
