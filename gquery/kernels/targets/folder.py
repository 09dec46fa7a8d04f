"""A folder of the user's own, held by its descriptor.

It keeps what we execute, so nobody else may be able to put a file there, or to put another folder in its place. Every folder
above it is checked while it is opened, from the root down, each through the descriptor of the one before. Later uses go
through the folder's own descriptor: what happens to its path behind the check does not matter.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a planted pipe would hang who opens it
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def open_folder(path: Path) -> int:
    """A descriptor of the folder, which is made if it is missing. OSError where it cannot be opened, with a reason in the place
    of the error's text also where somebody else could change what is in it."""
    real = Path(os.path.realpath(path))
    descriptor = os.open("/", _FOLDER)
    trusted = {0, os.getuid(), os.fstat(descriptor).st_uid}  # who owns the root can do anything
    try:
        for number, part in enumerate(real.parts[1:], 2):
            above, descriptor = descriptor, _enter(part, descriptor)
            os.close(above)
            place = Path(*real.parts[:number])
            reason = _reason(place, os.fstat(descriptor), trusted, is_last=place == real)
            if reason is not None:
                raise PermissionError(None, reason)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _enter(name: str, above: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except FileNotFoundError:
        with suppress(FileExistsError):  # another process was quicker
            os.mkdir(name, 0o700, dir_fd=above)
        return os.open(name, _FOLDER, dir_fd=above)


def _reason(place: Path, status: os.stat_result, trusted: set[int], is_last: bool) -> str | None:
    """Why a folder is not safe; None where it is."""
    if status.st_uid not in ({os.getuid()} if is_last else trusted):
        return f"{place} belongs to another user"
    writers = status.st_mode & _OTHERS_WRITE
    if writers == stat.S_IWGRP and _is_own_group(status.st_gid):
        return None
    if writers and (is_last or not status.st_mode & stat.S_ISVTX):  # in a sticky one nobody moves what is another's
        return f"{place} can be written by others; run: chmod go-w {place}"
    return None


def _is_own_group(group: int) -> bool:
    """Whether nobody but the user is in a group: distributions give each user one of the same name."""
    import grp
    import pwd

    try:
        name, record = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(group)
    except KeyError:
        return False
    return record.gr_name == name and set(record.gr_mem) <= {name}


def read_file(folder: int, name: str, most: int) -> bytes | None:
    """A file of the user's own, of so many bytes at most; None where there is none that can be read."""
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.getuid() and status.st_size <= most
        return os.read(descriptor, status.st_size) if is_own else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


def has_file(folder: int, name: str) -> bool:
    """Whether there is a file of the name that holds anything."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_size > 0
    except OSError:
        return False


def write_file(folder: int, name: str, content: bytes) -> None:
    """Write a file so that nobody ever reads a part of it; in place of what has the name. OSError where that fails."""
    temporary = f"t{os.urandom(12).hex()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):  # an interrupt behind the replacement
            os.unlink(temporary, dir_fd=folder)
        raise
