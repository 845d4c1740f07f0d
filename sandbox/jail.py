"""A root for runs: what they may read, read-only, and an empty working folder in memory; nothing else has a name.

Needs a mount namespace to be built in. The fork server stays outside, so its own paths stay as they are; its children
enter, which costs one system call each.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from autotest_env.sandbox import kernel

_RDONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8
_REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 32, 4096, 16384, 1 << 18
_ROOT_NAME = "root"
MARKER = Path("/marker")
"""A file that a run may not read, and could but for Landlock; its path inside."""
_FOLDER_OPTIONS = f"mode=700,size={80 << 20},nr_inodes=6000"
"""Above the limits at which a run is stopped (`sandbox.watch`), so that it ends by their name."""


class Jail:
    """The root, mounted; paths are as seen from outside."""

    def __init__(self, folder: Path, run_name: str, readable: Sequence[Path]) -> None:
        """Build it in `folder`; runs work in its `run_name`. Raises OSError, and cleans up then."""
        self._run = folder / run_name
        self._root = folder / _ROOT_NAME
        self.folder = self._inside(folder)
        """What runs see as `folder`; a mount point."""
        kernel.mount(None, Path("/"), _RECURSIVE | _PRIVATE)
        self._root.mkdir(mode=0o755)
        try:
            kernel.mount("tmpfs", self._root, _NOSUID | _NODEV | _NOEXEC, "tmpfs", "mode=755")
            for path in readable:
                self._show(path)
            self._keep_times({parent for path in readable for parent in path.parents})
            self.folder.mkdir(mode=0o755, parents=True)
            self._inside(MARKER).touch(mode=0o644)
            kernel.mount(None, self._root, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV | _NOEXEC)
            self._mount_folder()
            kernel.try_in_child(self.enter)
        except OSError:
            self.close()
            raise

    def renew(self) -> None:
        """Put an empty working folder in the place of the last one, the same for every run, inode numbers included."""
        kernel.unmount(self.folder, kernel.DETACH)
        self._mount_folder()

    def enter(self) -> None:
        """Make it the root of the calling process; there is no way out without capabilities."""
        os.chroot(self._root)
        os.chdir(self._run)

    def close(self) -> None:
        """Unmount everything, as far as it is mounted."""
        with suppress(OSError):
            kernel.unmount(self._root, kernel.DETACH)
        self._root.rmdir()

    def _inside(self, path: Path) -> Path:
        return self._root / path.relative_to("/")

    def _mount_folder(self) -> None:
        kernel.mount("tmpfs", self.folder, _NOSUID | _NODEV | _NOEXEC, "tmpfs", _FOLDER_OPTIONS)
        self._inside(self._run).mkdir(mode=0o700)

    def _show(self, path: Path) -> None:
        place = self._inside(path)
        if path.is_dir():
            place.mkdir(mode=0o755, parents=True, exist_ok=True)
        elif not place.exists():
            place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            place.touch()
        kernel.mount(path, place, _BIND | _RECURSIVE)
        kept = os.statvfs(place).f_flag & (_RDONLY | _NOSUID | _NODEV | _NOEXEC)  # what is set may be locked
        no_devices = 0 if path.is_char_device() else _NODEV
        kernel.mount(None, place, _REMOUNT | _BIND | _RDONLY | _NOSUID | no_devices | kept)

    def _keep_times(self, folders: Iterable[Path]) -> None:
        """The import system lists a folder anew when its time has changed, and a run may not list these."""
        for folder in folders:
            times = folder.stat()
            os.utime(self._inside(folder), ns=(times.st_atime_ns, times.st_mtime_ns))
