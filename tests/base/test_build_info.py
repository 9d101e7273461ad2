"""Which commit a build says it is of."""

from __future__ import annotations

from pathlib import Path

from ottla.base.build_info import UNKNOWN, commit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def test_the_commit_of_a_checkout(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "refs" / "heads" / "main").write_text(f"{COMMIT}\n")
    assert commit(tmp_path) == COMMIT
    (git / "refs" / "heads" / "main").unlink()
    (git / "packed-refs").write_text(f"# pack-refs with: peeled\n{COMMIT} refs/heads/main\n")
    assert commit(tmp_path) == COMMIT
    (git / "HEAD").write_text(f"{COMMIT}\n")  # detached
    assert commit(tmp_path) == COMMIT


def test_the_commit_of_a_work_tree(tmp_path: Path) -> None:
    shared = tmp_path / "repository"
    own = shared / "worktrees" / "mine"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/mine\n")
    (own / "commondir").write_text("../..\n")
    (shared / "packed-refs").write_text(f"{COMMIT} refs/heads/mine\n")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".git").write_text(f"gitdir: {own}\n")
    assert commit(tmp_path / "tree") == COMMIT


def test_a_build_without_a_commit_says_so(tmp_path: Path) -> None:
    assert commit(tmp_path) == UNKNOWN
