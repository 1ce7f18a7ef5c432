"""What was published once is published again, byte by byte: by every statistic, process and option."""

from pathlib import Path

import pytest
from golden_files import FILES, FOLDER, ROOT, digest, listed, stored, texts, write

STREAMS = {file: make() for file, make in FILES.items()}
CASES = [(file, name) for file in FILES for name in sorted({*STREAMS[file], *stored(file)})]


@pytest.mark.parametrize(("file", "name"), CASES, ids=[name for _, name in CASES])
def test_published_bytes_stay_what_they_are(file, name):
    before = stored(file)
    assert name in before, f"{file} is frozen: put new streams into a file of their own"
    assert name in STREAMS[file], f"{file} has releases of {name!r}, which nothing makes any more"
    now = texts(STREAMS[file][name]())
    for number, (old, new) in enumerate(zip(before[name], now, strict=False), start=1):
        assert new == old, (
            f"release {number} of {name!r} is not what was published: a change of noise, of coin names or of a format "
            f"changes every stream under its old key. Mend the code; {file} is never written again"
        )
    assert len(now) == len(before[name]), f"{name!r} published {len(before[name])} releases, and now {len(now)}"


def test_files_of_published_bytes_are_as_they_were_written():
    """The hashes lie elsewhere, and `.ci/run` checks them too."""
    assert {path.name for path in FOLDER.glob("*.json")} == set(listed())
    assert set(listed()) <= set(FILES)
    for file, hash in listed().items():
        assert digest(file) == hash, f"{file} was changed after it was written: go back to what it was"
    assert "sha256sum --check" in (ROOT / ".ci" / "run").read_text()


def test_a_file_is_written_once(tmp_path, monkeypatch):
    for name, path in (("FOLDER", tmp_path), ("ROOT", tmp_path), ("HASHES", tmp_path / "hashes")):
        monkeypatch.setattr(f"golden_files.{name}", path)
    monkeypatch.setitem(FILES, "new.json", lambda: {"two": lambda: iter([b'[1,"n"]', b"\xff"])})
    write("new.json")
    assert stored("new.json") == {"two": ['[1,"n"]', "base64:/w=="]}
    assert listed() == {"new.json": digest("new.json")}
    with pytest.raises(SystemExit, match="never written again"):
        write("new.json")
    (tmp_path / "new.json").unlink()
    with pytest.raises(SystemExit, match="never written again"):
        write("new.json")
    assert not Path(tmp_path / "new.json").exists()
