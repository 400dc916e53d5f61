"""The distribution: what is in the wheel and in the source archive, and that the wheel works by itself."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"symjax": "symjax", "lowering": "symjax/lowering", "sparse": "symjax/sparse"}


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    # JAX is told to leave accelerators alone: other tests may hold them
    full = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": "1", **env}
    return subprocess.run(list(map(str, command)), cwd=cwd, env=full, capture_output=True, text=True, check=False)


def source_files() -> set[str]:
    """Every file of the package in the repository, by the name it must have in the wheel."""
    found = set()
    for folder, inside in FOLDERS.items():
        for path in (ROOT / folder).rglob("*"):  # does not follow the two symbolic links
            relative = path.relative_to(ROOT / folder)
            if path.is_file() and "__pycache__" not in relative.parts and path.suffix not in {".pyc", ".tmp"}:
                found.add(f"{inside}/{relative.as_posix()}")
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], Path, Path]:
    """(the package's files when the build began, source archive, wheel); the wheel is built from the archive."""
    files, out = source_files(), tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (archive,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return files, archive, wheel


def test_wheel_holds_the_package_and_nothing_else(built: tuple[set[str], Path, Path]) -> None:
    files, _, wheel = built
    assert wheel.name.startswith("symjax_mxnet-")
    names = [n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n]
    assert len(names) == len(set(names)), "a file is in the wheel twice"
    assert set(names) == files
    assert {n.split("/")[0] for n in names} == {"symjax"}, "lowering and sparse must not be installed at the top level"


def test_wheel_carries_data_types_and_license(built: tuple[set[str], Path, Path]) -> None:
    names = zipfile.ZipFile(built[2]).namelist()
    for needed in ("py.typed", "data/digits-symbol.json", "data/digits-0010.params", "data/digits.npz"):
        assert f"symjax/{needed}" in names
    assert any(n.endswith(".dist-info/licenses/LICENSE") for n in names)
    demo = sum(i.file_size for i in zipfile.ZipFile(built[2]).infolist() if i.filename.startswith("symjax/data/digits"))
    assert 0 < demo < 500_000


def test_wheel_names_the_command_and_its_needs(built: tuple[set[str], Path, Path]) -> None:
    archive = zipfile.ZipFile(built[2])
    info = next(n.rsplit("/", 1)[0] for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
    text = archive.read(f"{info}/METADATA").decode()
    assert "Name: symjax-mxnet\n" in text
    assert "Requires-Python: >=3.11\n" in text
    assert "symjax = symjax.cli:main" in archive.read(f"{info}/entry_points.txt").decode()
    required = {line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("Requires-Dist:")}
    core = {r.split(";")[0] for r in required if "extra ==" not in r}
    names = {r.split(">")[0].split("<")[0].strip() for r in core}
    assert names == {"click", "flatbuffers", "flax", "jax", "jaxlib", "jaxtyping", "numpy", "safetensors", "tqdm"}


def test_wheel_runs_without_the_repository(built: tuple[set[str], Path, Path], tmp_path: Path) -> None:
    zipfile.ZipFile(built[2]).extractall(tmp_path / "site")
    code = "import symjax, symjax.lowering, symjax.sparse as s; print(symjax.__version__, symjax.__file__, s.__file__)"
    done = run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert done.returncode == 0, done.stderr
    version, *files = done.stdout.split()
    assert all(Path(f).is_relative_to(tmp_path / "site") for f in files)
    assert f"-{version}-" in built[2].name


def test_source_archive_has_the_real_folders(built: tuple[set[str], Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        names = {m.name.split("/", 1)[-1] for m in archive.getmembers()}
    for needed in ("lowering/__init__.py", "sparse/__init__.py", "symjax/__init__.py", "pyproject.toml", "LICENSE"):
        assert needed in names


@pytest.mark.parametrize("folder", ["lowering", "sparse"])
def test_folders_refuse_to_be_imported_from_the_top(folder: str) -> None:
    done = run(sys.executable, "-c", f"import {folder}", cwd=ROOT)
    assert done.returncode == 1
    assert f"ImportError: this package was imported as '{folder}'" in done.stderr
    assert f"symjax.{folder}" in done.stderr


def test_installed_version_is_the_package_version() -> None:
    import symjax

    assert metadata.version("symjax-mxnet") == symjax.__version__
