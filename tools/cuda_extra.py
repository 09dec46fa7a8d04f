"""Print ``,cu13`` or ``,cu12``, the extra that fits this machine's NVIDIA driver, or nothing where there is no GPU.

The Makefile runs it before anything is installed, so it uses the standard library alone: it asks the driver itself.
"""

from __future__ import annotations

import ctypes


def cuda_extra() -> str:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    version, devices = ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(devices)) or devices.value == 0:
        return ""
    if driver.cuDriverGetVersion(ctypes.byref(version)):
        return ""
    if version.value >= 13000:
        return ",cu13"
    return ",cu12" if version.value >= 12000 else ""


if __name__ == "__main__":
    print(cuda_extra())
