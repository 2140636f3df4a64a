"""The server and the packs believe the same certificates."""

from __future__ import annotations

from pathlib import Path

import pytest

from ot_sdk.certificates import FILES, FOLDER, NamedCertificates


@pytest.mark.parametrize("name", FILES)
def test_each_variable_names_a_file_beside_the_directory(name: str) -> None:
    assert NamedCertificates.of({name: "/a.pem", FOLDER: "/certs"}) == (name, "/a.pem", "/certs")


def test_the_first_variable_that_is_set_counts() -> None:
    environ = {FILES[0]: "", FILES[1]: "/b.pem", FILES[2]: "/c.pem"}
    assert NamedCertificates.of(environ) == (FILES[1], "/b.pem", "")


def test_a_variable_for_a_file_may_name_a_directory(tmp_path: Path) -> None:
    assert NamedCertificates.of({FILES[1]: str(tmp_path)}) == (FILES[1], "", str(tmp_path))
    assert NamedCertificates.of({FILES[1]: str(tmp_path), FOLDER: "/certs"}) == (FILES[1], "", "/certs")


def test_where_none_are_named_there_is_no_context() -> None:
    assert NamedCertificates.of({}).context() is None


def test_a_file_without_certificates_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    with pytest.raises(OSError, match="certificate"):
        NamedCertificates.of({FILES[0]: str(tmp_path / "ca.pem")}).context()
