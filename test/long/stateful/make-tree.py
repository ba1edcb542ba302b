"""Fills a folder with files of all kinds, most of them small. Arguments: the folder and the number of small files."""

import os
import socket
import stat
import struct
import sys

root, count = os.fsencode(sys.argv[1]), int(sys.argv[2])
mebibyte = 1 << 20


def path(*parts: bytes) -> bytes:
    return os.path.join(root, *parts)


def write(name: bytes, content: bytes) -> None:
    with open(name, "wb") as file:
        file.write(content)


for index in range(count):
    folder = path(b"many", b"%02x" % (index % 256), b"%d" % (index // 25600))
    os.makedirs(folder, exist_ok=True)
    name = os.path.join(folder, b"file-%d" % index)
    write(name, b"%d\n" % index * (index % 40))
    if index % 10 == 0:
        os.chown(name, index % 70000, (index * 7) % 70000)
    if index % 11 == 0:
        os.utime(name, ns=(index * 1_000_000_007, index * 1_000_000_009 + 123_456_789))
    if index % 13 == 0:
        os.chmod(name, index % 0o1000)
    if index % 100 == 0:
        os.link(name, path(b"many", b"%02x" % (index % 256), b"link-%d" % index))

os.makedirs(path(b"odd"))
odd = [
    *(b"new\nline", b"-rf", b" space ", b"tab\t", b"invalid-\xff\xfe", "\u00fcml\u00e4ut-\U0001f4be".encode(), b"*", b"'\"$(x)"),
    *(b"x" * 255, b"..."),
]
for name in odd:
    write(path(b"odd", name), name)
deep = path(*[b"deep"] * 60)
os.makedirs(deep)
write(os.path.join(deep, b"leaf"), b"leaf")
os.makedirs(path(b"empty", b"folder"))
os.chmod(path(b"empty"), 0o2750)
os.chmod(path(b"odd"), 0o1777)

os.makedirs(path(b"special"))
os.symlink(b"../missing/\xff target", path(b"special", b"dangling"))
os.symlink(b"/etc/passwd", path(b"special", b"absolute"))
os.lchown(path(b"special", b"absolute"), 5, 6)
os.utime(path(b"special", b"absolute"), ns=(1, 2), follow_symlinks=False)
os.mkfifo(path(b"special", b"pipe"), 0o640)
socket.socket(socket.AF_UNIX).bind(os.fsdecode(path(b"special", b"socket")))
os.mknod(path(b"special", b"null"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
write(path(b"special", b"setuid"), b"#!/bin/sh\n")
os.chmod(path(b"special", b"setuid"), 0o6755)
write(path(b"special", b"xattrs"), b"x")
os.setxattr(path(b"special", b"xattrs"), b"user.note", b"\x00\xffbinary")
os.setxattr(path(b"special", b"xattrs"), b"user.large", b"v" * 2000)
os.setxattr(path(b"special"), b"user.folder", b"yes")
# u::rw-, user 4242 r--, g::r--, mask r--, o::---
acl = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *entry)
    for entry in [(1, 6, 0xFFFFFFFF), (2, 4, 4242), (4, 4, 0xFFFFFFFF), (16, 4, 0xFFFFFFFF), (32, 0, 0xFFFFFFFF)]
)
write(path(b"special", b"acl"), b"x")
os.setxattr(path(b"special", b"acl"), b"system.posix_acl_access", acl)
with open(path(b"special", b"sparse"), "wb") as file:
    for offset in (0, 40 * mebibyte, 100 * mebibyte):
        file.seek(offset)
        file.write(b"island")
    file.truncate(128 * mebibyte)
write(path(b"special", b"large"), os.urandom(16 * mebibyte))
write(path(b"special", b"future"), b"x")
os.utime(path(b"special", b"future"), ns=(0, 4_000_000_000_000_000_001))
write(path(b"special", b"past"), b"x")
os.utime(path(b"special", b"past"), ns=(0, -1_000_000_000))
os.utime(path(b"empty"), ns=(5, 987_654_321))
os.sync()
print("made", flush=True)
