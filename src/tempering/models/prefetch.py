"""Ask for memory before it is used.

Kernels that take rows of a large table in no order wait for each row's first cache lines: the
processor sees by itself only that memory is read line after line. Asking changes no result.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: Numbers of 4 bytes in a cache line of 64.
CACHE_LINE = 16

_INT32 = ir.IntType(32)
_ADDRESS = ir.IntType(8).as_pointer()
# To read, not to write; for as many levels of cache as there are; data, not code.
_HOW = [_INT32(0), _INT32(3), _INT32(1)]


def _type_and_code(typingctx: Any, table: Any, row: Any, column: Any) -> Any:
    """The signature of `prefetch`, and what writes its code."""

    def generate(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = cgutils.get_item_pointer(context, builder, signature.args[0], array, args[1:])
        function_type = ir.FunctionType(ir.VoidType(), [_ADDRESS, _INT32, _INT32, _INT32])
        declared = builder.module.declare_intrinsic("llvm.prefetch", [_ADDRESS], function_type)
        builder.call(declared, [builder.bitcast(place, _ADDRESS), *_HOW])
        return context.get_dummy_value()

    return types.void(table, types.intp, types.intp), generate


prefetch: Callable[..., None] = intrinsic(_type_and_code)
"""prefetch(table, row, column): ask for the cache line that holds table[row, column].

Neither index may be negative.
"""
