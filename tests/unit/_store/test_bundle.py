# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The secrets bundle, and whether git tracks it (design section 4)."""

from __future__ import annotations

import base64
import hashlib
import os
import struct

import pytest
from ansible_collections.ichor.talos.plugins.module_utils._model.errors import TalosError
from ansible_collections.ichor.talos.plugins.module_utils._store.git_index import GitUnreadable, tracked_by_git

from tests.unit._store.store_world import made, opened

SECRET = b"cluster:\n  secret: c2VjcmV0\n"

# Indexes as git wrote them, of a tree with ichor/machines/m1.yaml and ichor/secrets/prod.yaml (version 3 with a file `n` that
# was only announced).
VERSION_2 = (
    "RElSQwAAAAIAAAACawy15RqGKvdrDLXlGoYq9wAA/gAAmIQCAACBpAAAAAAAAAAAAAAAAraAJTRdUwGrrU2eyRZvRVJDoNdGABZpY2hvci9tYWNoaW5lcy9tMS55YW1sAAAAAGsMteUaTvlH"
    "awy15RpO+UcAAP4AAJiD0wAAgaQAAAAAAAAAAAAAAAJYe+a0w/k/k8SJwBEbulWWFHomywAXaWNob3Ivc2VjcmV0cy9wcm9kLnlhbWwAAAAJs0pOBo/w/U1VGjCVpU4C69u0PA==")
VERSION_3 = (
    "RElSQwAAAAMAAAADawy15RqGKvdrDLXlGoYq9wAA/gAAmIQCAACBpAAAAAAAAAAAAAAAAraAJTRdUwGrrU2eyRZvRVJDoNdGABZpY2hvci9tYWNoaW5lcy9tMS55YW1sAAAAAGsMteUaTvlH"
    "awy15RpO+UcAAP4AAJiD0wAAgaQAAAAAAAAAAAAAAAJYe+a0w/k/k8SJwBEbulWWFHomywAXaWNob3Ivc2VjcmV0cy9wcm9kLnlhbWwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAIGk"
    "AAAAAAAAAAAAAAAA5p3im7LR1kNLiymud1rYwuSMU5FAASAAbgAAAAAAAABYcYnG8iwS6DR9FQ/uHukmkyDeKA==")
VERSION_4 = (
    "RElSQwAAAAQAAAACawy15RqGKvdrDLXlGoYq9wAA/gAAmIQCAACBpAAAAAAAAAAAAAAAAraAJTRdUwGrrU2eyRZvRVJDoNdGABYAaWNob3IvbWFjaGluZXMvbTEueWFtbABrDLXlGk75R2sM"
    "teUaTvlHAAD+AACYg9MAAIGkAAAAAAAAAAAAAAACWHvmtMP5P5PEicARG7pVlhR6JssAFxBzZWNyZXRzL3Byb2QueWFtbACoHjCGZ5VntFZy/G9kjlN3KPm6Ig==")
SPLIT = (
    "RElSQwAAAAQAAAACawy15RqGKvdrDLXlGoYq9wAA/gAAmIQCAACBpAAAAAAAAAAAAAAAAraAJTRdUwGrrU2eyRZvRVJDoNdGAAAAAGsMteUaTvlHawy15RpO+UcAAP4AAJiD0wAAgaQAAAAA"
    "AAAAAAAAAAJYe+a0w/k/k8SJwBEbulWWFHomywAAAABsaW5rAAAARKgeMIZnlWe0VnL8b2SOU3co+boiAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAACAAAAAgAAAAIAAAAAAAAAAAAAAAMAAAAA"
    "g7xyVT8UMCAEl9yHKquvlhf+yZ0=")
SHARED = "sharedindex.a81e3086679567b45672fc6f648e537728f9ba22"
SHA256 = (
    "RElSQwAAAAIAAAABawy15SKhXP1rDLXlIqFc/QAA/gAAmIlRAACBpAAAAAAAAAAAAAAAAhT1Fi4v49JA0NN6qrD5Dkr5p8+nljnzurAFtb+0F02fABdpY2hvci9zZWNyZXRzL3Byb2QueWFt"
    "bAAAAAAAAAAta06yw/gHRSBDh8jrKIUpVJq/en3ePlcJJgeRG7OlZQ==")


def repository(folder, index, **more):
    git = folder / ".git"
    git.mkdir(parents=True)
    (git / "index").write_bytes(base64.b64decode(index))
    for name, content in more.items():
        (git / name).write_bytes(content)
    return git


@pytest.fixture
def store(tmp_path):
    return made(tmp_path / "ichor")


def put(store, content=SECRET, mode=0o600, name="prod"):
    path = store.layout.secret(name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    return path


def refused(store, reason, name="prod"):
    with pytest.raises(TalosError) as caught:
        store.bundle(name)
    assert caught.value.reason == reason
    assert "c2VjcmV0" not in str(caught.value) + caught.value.detail
    return caught.value.text


def test_a_bundle_of_the_owner_alone_is_read(store):
    put(store)
    assert store.bundle("prod") == SECRET


def test_a_missing_one(store):
    assert "is not in the store" in refused(store, "SecretsUnavailable")
    assert "cannot name a record" in refused(store, "InvalidInput", "../prod")
    store.layout.secret("prod").mkdir(parents=True)
    assert "is a folder" in refused(store, "SecretsUnavailable")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o604, 0o602, 0o610])
def test_one_that_others_can_reach_is_refused(store, mode):
    path = put(store, mode=mode)
    assert f"chmod 600 {path}" in refused(store, "SecretsUnavailable")


def test_a_vaulted_one_is_decrypted_by_who_has_the_password(store, tmp_path):
    path = put(store, b"$ANSIBLE_VAULT;1.1;AES256\n3136\n", 0o644)
    assert "encrypted with ansible-vault" in refused(store, "SecretsUnavailable")
    asked = []
    with_password = opened(tmp_path / "ichor", decrypt=lambda name: asked.append(name) or SECRET)
    repository(tmp_path, VERSION_2)  # git may keep it
    assert with_password.bundle("prod") == SECRET
    assert asked == [str(path)]


def test_what_is_no_file_or_too_large(store):
    path = put(store)
    path.unlink()
    os.mkfifo(path, 0o600)
    assert "a pipe" in refused(store, "SecretsUnavailable")
    path.unlink()
    put(store, b"x" * (4 * 2**20 + 1))
    assert "larger than 4 MiB" in refused(store, "BundleInvalid")


@pytest.mark.parametrize("index", [VERSION_2, VERSION_3, VERSION_4], ids=["2", "3", "4"])
def test_one_in_clear_that_git_tracks_is_refused(store, tmp_path, index):
    repository(tmp_path, index)
    put(store)
    put(store, name="other")
    text = refused(store, "SecretsUnavailable")
    assert f"in clear and tracked by git ({tmp_path})" in text
    assert "git rm --cached" in text
    assert store.bundle("other") == SECRET


def test_a_split_index_and_one_of_sha256(tmp_path):
    path = tmp_path / "one" / "ichor" / "secrets" / "prod.yaml"
    git = repository(tmp_path / "one", SPLIT, **{SHARED: base64.b64decode(VERSION_4)})
    assert tracked_by_git(path) == str(tmp_path / "one")
    (git / SHARED).unlink()
    with pytest.raises(GitUnreadable):
        tracked_by_git(path)
    config = b"[core]\n\tbare = false\n[extensions]\n\tobjectformat = sha256\n"
    repository(tmp_path / "two", SHA256, config=config)
    assert tracked_by_git(tmp_path / "two" / "ichor" / "secrets" / "prod.yaml") == str(tmp_path / "two")


def test_a_worktree_and_a_submodule_have_their_index_elsewhere(tmp_path):
    git = repository(tmp_path / "main", VERSION_2)
    (git / "worktrees" / "w").mkdir(parents=True)
    (git / "index").rename(git / "worktrees" / "w" / "index")
    (git / "worktrees" / "w" / "commondir").write_text("../..\n")
    work = tmp_path / "work"
    work.mkdir()
    (work / ".git").write_text(f"gitdir: {git / 'worktrees' / 'w'}\n")
    assert tracked_by_git(work / "ichor" / "secrets" / "prod.yaml") == str(work)
    (work / ".git").write_text("gitdir: ../main/.git/worktrees/w\n")
    assert tracked_by_git(work / "ichor" / "secrets" / "prod.yaml") == str(work)
    assert tracked_by_git(work / "ichor" / "secrets" / "other.yaml") == ""


def test_links_are_looked_at_from_both_ends(tmp_path):
    repository(tmp_path / "repo", VERSION_2)
    folder = tmp_path / "repo" / "ichor" / "secrets"
    folder.mkdir(parents=True)
    (folder / "prod.yaml").write_bytes(SECRET)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.yaml").symlink_to(folder / "prod.yaml")
    (tmp_path / "folder").symlink_to(folder)
    assert tracked_by_git(tmp_path / "outside" / "x.yaml") == str(tmp_path / "repo")
    assert tracked_by_git(tmp_path / "folder" / "prod.yaml") == str(tmp_path / "repo")


def test_no_repository_and_a_fresh_one(tmp_path):
    assert tracked_by_git(tmp_path / "ichor" / "secrets" / "prod.yaml") == ""
    (tmp_path / ".git").mkdir()
    assert tracked_by_git(tmp_path / "ichor" / "secrets" / "prod.yaml") == ""


def index_of(*entries):
    """An index of version 2 with these modes and names."""
    data = b"DIRC" + struct.pack(">LL", 2, len(entries))
    for mode, name in entries:
        entry = struct.pack(">10L", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0) + b"\x11" * 20 + struct.pack(">H", min(len(name), 0xFFF)) + name
        data += entry + b"\0" * (8 - len(entry) % 8)
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


def test_long_names_and_folders_of_a_sparse_index(tmp_path):
    long = "/".join(["d" * 200] * 21)
    git = repository(tmp_path, "")
    (git / "index").write_bytes(index_of((0o100644, f"{long}/prod.yaml".encode()), (0o040000, b"ichor/secrets/"), (0o100644, b"z")))
    assert tracked_by_git(tmp_path / "ichor" / "secrets" / "prod.yaml") == str(tmp_path)
    assert tracked_by_git(tmp_path / "z") == str(tmp_path)
    assert tracked_by_git(tmp_path / "y") == ""


@pytest.mark.parametrize("content", [b"", b"DIRC", b"DIRC\0\0\0\x09\0\0\0\0", b"xxxx\0\0\0\x02\0\0\0\0", base64.b64decode(VERSION_2)[:100],
                                     base64.b64decode(VERSION_4)[:100], b"DIRC\0\0\0\x02\xff\xff\xff\xff"])
def test_an_index_that_cannot_be_read_does_not_count_as_untracked(store, tmp_path, content):
    git = repository(tmp_path, VERSION_2)
    (git / "index").write_bytes(content)
    put(store)
    assert "whether git tracks it cannot be told" in refused(store, "SecretsUnavailable")


def test_a_git_file_that_leads_nowhere(store, tmp_path):
    (tmp_path / ".git").write_text("something else")
    put(store)
    assert "is no link to a repository" in refused(store, "SecretsUnavailable")


def test_a_bundle_is_written_for_its_owner_once(store):
    path = store.layout.secret("prod")
    assert store.bundle_form("prod") == "absent"
    store.write_bundle("prod", SECRET)
    assert store.bundle("prod") == SECRET and store.bundle_form("prod") == "clear"
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert sorted(entry.name for entry in path.parent.iterdir()) == [".gitignore", "prod.yaml"]
    with pytest.raises(TalosError, match="RecordExists"):
        store.write_bundle("prod", b"other")
    assert path.read_bytes() == SECRET
    store.write_bundle("prod", b"other", replace=True)
    assert path.read_bytes() == b"other" and path.stat().st_mode & 0o777 == 0o600


def test_a_folder_that_a_person_made_stays_as_it_is(store):
    path = store.layout.secret("prod")
    path.parent.mkdir(mode=0o755)
    store.write_bundle("prod", SECRET)
    assert path.parent.stat().st_mode & 0o777 == 0o755 and [entry.name for entry in path.parent.iterdir()] == ["prod.yaml"]


def test_what_cannot_be_a_bundle_is_told_and_nothing_hangs(store):
    path = put(store)
    path.unlink()
    os.mkfifo(path, 0o600)
    with pytest.raises(TalosError, match="SecretsUnavailable"):
        store.bundle_form("prod")


def test_a_vaulted_bundle_is_not_replaced_by_one_in_clear(store):
    path = put(store, b"$ANSIBLE_VAULT;1.1;AES256\n3136\n", 0o644)
    assert store.bundle_form("prod") == "vaulted"
    with pytest.raises(TalosError, match="BundleExposed"):
        store.write_bundle("prod", SECRET, replace=True)
    assert path.read_bytes().startswith(b"$ANSIBLE_VAULT")


def test_no_bundle_in_clear_is_written_where_git_tracks_it(store, tmp_path):
    repository(tmp_path, VERSION_2)
    with pytest.raises(TalosError, match="SecretsUnavailable"):
        store.write_bundle("prod", SECRET)
    assert not store.layout.secret("prod").exists()
