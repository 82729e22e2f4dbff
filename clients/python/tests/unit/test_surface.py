"""The public names and their signatures. Whoever changes this file changes what users have written against."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import kslate

PINNED = Path(__file__).with_name("surface.txt")


def surface() -> str:
    lines = []
    for name in sorted(kslate.__all__):
        value = getattr(kslate, name)
        if inspect.isfunction(value):
            lines.append(f"{name}{inspect.signature(value)}")
        elif not inspect.isclass(value):
            lines.append(f"{name} = {value}".replace("kslate._actions.", "kslate."))
        elif issubclass(value, Exception):
            fields = [field for field in inspect.get_annotations(value) if field not in ("code", "_carries")]
            lines.append(f"{name}({', '.join(base.__name__ for base in value.__bases__)}) {' '.join(fields)}".rstrip())
        elif dataclasses.is_dataclass(value):
            fields = [f"{field.name}: {inspect.formatannotation(field.type)}" for field in dataclasses.fields(value)]
            lines.append(f"{name} {{ {', '.join(fields)} }}")
        else:
            lines.append(f"{name}{inspect.signature(value)}")
            for method, function in sorted(vars(value).items()):
                if not method.startswith("_") and inspect.isfunction(function):
                    lines.append(f"  .{method}{inspect.signature(function)}")
                elif isinstance(function, property):
                    lines.append(f"  .{method}")
    return "\n".join(lines).replace("kslate._results.", "kslate.").replace("'", "") + "\n"


def test_the_surface_is_the_pinned_one() -> None:
    assert surface() == PINNED.read_text()


def test_nothing_else_is_public() -> None:
    modules = {path.stem for path in Path(kslate.__file__).parent.glob("*.py")} - {"__init__"}
    assert all(module.startswith("_") for module in modules)
    assert {name for name in vars(kslate) if not name.startswith("_")} == set(kslate.__all__)


def test_errors_and_results_are_told_by_the_name_one_imports() -> None:
    assert repr(kslate.Held) == "<class 'kslate.Held'>"
    assert kslate.Held.__module__ == kslate.Client.__module__ == kslate.Record.__module__ == "kslate"


def test_the_version_is_the_packages() -> None:
    pyproject = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'version = "{kslate.__version__}"' in pyproject


def test_the_package_is_typed() -> None:
    assert Path(kslate.__file__).with_name("py.typed").exists()
