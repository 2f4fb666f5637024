"""A rename that never replaces, in one step where the system offers one (docs/design.md §1)."""

from __future__ import annotations

import errno
import os
import sys

_NO_REPLACE = {"linux": ("renameat2", 1), "darwin": ("renameatx_np", 4)}


def rename_new(from_fd: int, source: str, to_fd: int, target: str) -> bool:
    """Rename unless the target exists, in one system call where the kernel and the file system offer one."""
    name, flag = _NO_REPLACE.get(sys.platform, ("", 0))
    if name:
        import ctypes

        call = getattr(ctypes.CDLL(None, use_errno=True), name, None)
        if call is not None:
            if call(from_fd, os.fsencode(source), to_fd, os.fsencode(target), flag) == 0:
                return True
            number = ctypes.get_errno()
            if number == errno.EEXIST:
                return False
            if number not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
                raise OSError(number, os.strerror(number))
    try:
        os.stat(target, dir_fd=to_fd, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(source, target, src_dir_fd=from_fd, dst_dir_fd=to_fd)
        return True
    return False
