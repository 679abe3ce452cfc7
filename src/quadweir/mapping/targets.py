"""The files of a mapping's logical targets, and the files that they must not overwrite.

A mapping is untrusted, and its targets name files in the user's working folder. So a target
replaces no existing file, unless the user allows that, and never a file that the run reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quadweir.errors import MappingError, UsageError
from quadweir.mapping.sources import FileStream, MappedFile

if TYPE_CHECKING:
    from quadweir.mapping.files import Folders
    from quadweir.mapping.model import Mapping


def target_paths(
    mapping: Mapping,
    folders: Folders,
    *,
    own: Sequence[Path] = (),
    read: Iterable[Path] = (),
    overwrite: bool = False,
) -> list[Path]:
    """The file of each logical target, in the order of `mapping.targets()`.

    Args:
        mapping: the mapping.
        folders: the start of its relative paths, and the folders that it may use.
        own: the other files that the run writes: its output and its dead letters.
        read: the other files that the run reads: the mapping itself.
        overwrite: targets may replace files.

    Raises:
        MappingError: a target lies outside of the folders, is another file of the run, or would
            replace a file.
        UsageError: the run's own output is a file that it reads.
    """
    inputs = {path.resolve() for path in read} | _inputs(mapping, folders)
    taken = {path.resolve() for path in own}
    for path in own:
        if path.resolve() in inputs:
            raise UsageError(
                f"{path} is read by this run, so it cannot be its output",
                hint="Choose another file.",
            )
    paths = []
    for target in mapping.targets():
        path = folders.resolve(target.path, target.root, span=target.span)
        if path in inputs or path in taken:
            does = "reads" if path in inputs else "writes for another purpose too"
            raise MappingError(
                f"the logical target {target.name} is {target.path}, which the run {does}",
                hint="Give the target a file of its own.",
                span=target.span,
            )
        if path.is_dir() or (path.exists() and not overwrite):
            raise MappingError(
                f"the logical target {target.name} would replace {target.path}, which was there "
                "before the run",
                detail=f"That is {path}.",
                hint="Move it away, or allow it with --overwrite.",
                span=target.span,
            )
        paths.append(path)
        taken.add(path)
    return paths


def _inputs(mapping: Mapping, folders: Folders) -> set[Path]:
    sources = {triples_map.source for triples_map in mapping.triples_maps}
    return {
        folders.resolve(logical.source.path, logical.source.root, span=logical.span)
        for logical in sources
        if isinstance(logical.source, MappedFile | FileStream)
    }
