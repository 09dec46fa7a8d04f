"""The shape of a launch on a GPU: threads of a block, and blocks that a processor runs at once."""

from __future__ import annotations

from gquery import tuning
from gquery.device.profile import DeviceProfile


def block_shape(shared: int, registers: int, profile: DeviceProfile) -> tuple[int, int]:
    """Threads of a block with ``shared`` bytes of shared memory, and the blocks that a processor runs at once: the most threads
    in all, in small blocks. No more blocks are launched, because each has to be filled and flushed.

    >>> from gquery.device.profile import H200
    >>> [block_shape(shared, 32, H200) for shared in (8_000, 40_000, 65_536)]
    [(256, 8), (512, 4), (1024, 2)]
    >>> block_shape(8_000, 40, H200), block_shape(65_536, 100, H200)
    ((256, 6), (256, 2))
    """
    sizes = [tuning.launches.threads]
    while sizes[-1] < tuning.launches.most_threads:
        sizes.append(2 * sizes[-1])
    shapes = [(n, resident_blocks(n, shared, registers, profile)) for n in sizes]
    fitting = [(n, blocks) for n, blocks in shapes if n * _rounded(registers) <= profile.processor_registers]
    return max(fitting, key=lambda shape: shape[0] * shape[1])


def resident_blocks(threads: int, shared: int, registers: int, profile: DeviceProfile) -> int:
    """Blocks that a processor runs at once, one at least."""
    by_registers = profile.processor_registers // (threads * _rounded(registers))
    by_shared = profile.processor_shared_bytes // (shared + profile.reserved_shared_bytes)
    return max(1, min(profile.processor_threads // threads, by_registers, by_shared))


def _rounded(registers: int) -> int:
    """The registers that a thread takes: they are given out eight at a time."""
    return max(8, -(-registers // 8) * 8)
