"""Where a live run records its input, to explain its answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadweir.commands.whylive import record_folder
from quadweir.errors import UsageError


def test_a_run_without_a_record_leaves_nothing_to_explain_by(tmp_path: Path) -> None:
    folder = record_folder(tmp_path, why=True)
    assert folder is not None
    (folder / "some.5.taken").touch()
    (tmp_path / "offsets").mkdir()
    # The next run finds it again.
    assert record_folder(tmp_path, why=True) == folder
    assert list(folder.iterdir())
    # A run without --why records nothing, so the recording would have a gap.
    assert record_folder(tmp_path, why=False) is None
    with pytest.raises(UsageError, match="without --why"):
        record_folder(tmp_path, why=True)
