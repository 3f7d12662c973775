"""A file system that never answers, as a network's that went away: FUSE without anybody behind it, in a namespace of this process."""

import ctypes
import os

kCloneNewNs, kCloneNewUser = 0x00020000, 0x10000000
kMsRec, kMsPrivate, kMntDetach = 0x4000, 0x40000, 2
libc = ctypes.CDLL(None, use_errno=True)


def enter_namespace():
    """Mounts of this process and its children are theirs alone from now on; False where the system does not allow it.

    To be called while the process has one thread.
    """
    user, group = os.getuid(), os.getgid()
    if libc.unshare(kCloneNewNs) != 0:
        if libc.unshare(kCloneNewNs | kCloneNewUser) != 0:
            return False
        for name, line in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"),
                           ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(line)
    return libc.mount(b"none", b"/", None, kMsRec | kMsPrivate, None) == 0


class StalledMount:
    """At `folder`; who asks for anything in it waits until close()."""

    def __init__(self, folder):
        self.folder = folder
        self.fuse = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.fuse},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
        if libc.mount(b"efimd-test", os.fsencode(folder), b"fuse", 0, options.encode()) != 0:
            error = ctypes.get_errno()
            os.close(self.fuse)
            raise OSError(error, os.strerror(error), str(folder))

    def close(self):
        os.close(self.fuse)  # ends every wait
        libc.umount2(os.fsencode(self.folder), kMntDetach)
