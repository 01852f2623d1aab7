"""One step of a fit on all devices of this machine, with the bits that one device gives.

Every device has the topics and the documents of the step. Work that goes row by row is shared out:
documents while they settle or are sampled, words while their statistics are summed. The results
travel to all devices. A document's sweeps, and the sum of a word over its documents in their order,
are made on one device each: so no sum depends on how many devices there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any


def device_mesh() -> Any:
    """All devices of this process; None if there is one, or if JAX was told which one to take."""
    import jax

    devices = jax.local_devices()
    if len(devices) == 1 or jax.config.jax_default_device is not None:  # pyright: ignore
        return None
    return jax.sharding.Mesh(devices, "devices")


def on_all_devices(array: Any) -> Any:
    """The array in the memory of each device."""
    import jax

    mesh = device_mesh()
    if mesh is None:
        return jax.device_put(array)
    return jax.device_put(array, jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec()))


def share_out(function: Callable[..., Any], rows: Sequence[Any], whole: Sequence[Any]) -> Any:
    """``function(*rows, *whole)``, each device with some of the rows."""
    import jax
    import jax.numpy as jnp

    mesh = device_mesh()
    if mesh is None:
        return function(*rows, *whole)
    n_rows = rows[0].shape[0]
    missing = -n_rows % mesh.size

    def part(*arrays):
        gather = partial(jax.lax.all_gather, axis_name="devices", tiled=True)
        return jax.tree.map(gather, function(*arrays))

    cut, uncut = jax.sharding.PartitionSpec("devices"), jax.sharding.PartitionSpec()
    in_specs = (*[cut] * len(rows), *[uncut] * len(whole))
    everywhere = partial(
        jax.lax.with_sharding_constraint, shardings=jax.sharding.NamedSharding(mesh, uncut)
    )
    # Or XLA would share out what comes before and after too, and sum up in another order.
    # Rows of zeros fill up: documents without words, and words that no document has.
    filled = [
        everywhere(jnp.pad(everywhere(own), [(0, missing)] + [(0, 0)] * (own.ndim - 1)))
        for own in rows
    ]
    # JAX cannot tell that what is gathered is alike on all devices, and is not to check it.
    specs: Any = {"in_specs": in_specs, "out_specs": uncut, "check_vma": False}
    found = jax.shard_map(part, mesh=mesh, **specs)(*filled, *whole)
    return jax.tree.map(lambda array: everywhere(array[:n_rows]), found)
