"""Prints a line for each entry below a folder: its name, content and metadata, in a fixed order."""

import hashlib
import os
import stat
import sys

root = os.fsencode(sys.argv[1])
first_of: dict[int, str] = {}


def describe(name: bytes, shown: str) -> str:
    info = os.lstat(name)
    kind = stat.S_IFMT(info.st_mode)
    parts = [shown, oct(info.st_mode), str(info.st_uid), str(info.st_gid), str(info.st_mtime_ns)]
    if kind == stat.S_IFREG:
        with open(name, "rb") as file:
            parts += [str(info.st_size), hashlib.file_digest(file, "sha256").hexdigest()]
        if info.st_size > 1 << 20:
            parts.append("sparse" if info.st_blocks * 512 < info.st_size else "full")
        if info.st_nlink > 1:
            parts += ["link of", first_of.setdefault(info.st_ino, shown), str(info.st_nlink)]
    elif kind == stat.S_IFLNK:
        parts.append(repr(os.readlink(name)))
    elif kind in (stat.S_IFCHR, stat.S_IFBLK):
        parts.append(str(info.st_rdev))
    names = sorted(os.listxattr(name, follow_symlinks=False))
    parts += [f"{key}={hashlib.sha256(os.getxattr(name, key, follow_symlinks=False)).hexdigest()[:16]}" for key in names]
    return " ".join(parts)


def walk(folder: bytes) -> None:
    print(describe(folder, repr(os.path.relpath(folder, root))))
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            # Made by the file system itself.
            if entry.name != b"lost+found":
                walk(entry.path)
        else:
            print(describe(entry.path, repr(os.path.relpath(entry.path, root))))


walk(root)
