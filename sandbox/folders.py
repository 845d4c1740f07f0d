"""Emptying a folder that submitted code has written into: any depth, any mode, no recursion."""

import os
from itertools import count
from pathlib import Path


def empty(folder: Path) -> None:
    """Remove everything inside `folder`. Folders are lifted up one by one, so no path grows long and no stack deep."""
    numbers = count()
    while entries := list(os.scandir(folder)):
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _lift(Path(entry.path), folder, numbers)
            else:
                Path(entry.path).unlink()


def remove(folder: Path) -> None:
    """Remove a folder and everything in it, if it exists."""
    if folder.exists():
        empty(folder)
        folder.rmdir()


def _lift(branch: Path, top: Path, numbers: "count[int]") -> None:
    """Remove one folder; its own folders move to `top`."""
    branch.chmod(0o700)
    for entry in list(os.scandir(branch)):
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            path.chmod(0o700)
            path.rename(_unused(top, numbers))
        else:
            path.unlink()
    branch.rmdir()


def _unused(top: Path, numbers: "count[int]") -> Path:
    while (path := top / f".lifted-{next(numbers)}").exists():
        pass
    return path
