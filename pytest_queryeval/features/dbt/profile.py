"""The target of a dbt profile: `profiles.yml`, in which `env_var` is expanded by pattern and nothing else is.

https://docs.getdbt.com/docs/core/connect-data-platform/profiles.yml
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from pytest_queryeval.core.errors import did_you_mean
from pytest_queryeval.documents.document import Node, file_at
from pytest_queryeval.documents.values import entries, required_text
from pytest_queryeval.documents.yaml_nodes import read_yaml
from pytest_queryeval.suites.variables import variable
from pytest_queryeval.text.redaction import register_secrets

PROFILES = "profiles.yml"
PROFILES_DIR = "DBT_PROFILES_DIR"
SCHEMAS = ("schema", "dataset")
_QUOTED = r"""(?:'[^'\n]*'|"[^"\n]*")"""
_ENV_VAR = re.compile(
    rf"\{{\{{-?\s*env_var\(\s*(?P<name>{_QUOTED})\s*(?:,\s*(?P<default>{_QUOTED}|[\w.]+)\s*)?\)\s*"
    r"(?:\|\s*(?:int|as_number|as_bool|as_native|as_text)\s*)*-?\}\}"
)
_JINJA = re.compile(r"\{[{%#]")


@dataclass(frozen=True, slots=True)
class Target:
    """A target of a profile: the texts and numbers of its settings, with `env_var` expanded."""

    name: str
    node: Node = field(repr=False)
    settings: dict[str, str] = field(repr=False)
    other_schemas: frozenset[str] = frozenset()
    """The schemas of the profile's other targets in lower case, as they are written."""

    def require(self, *names: str) -> str:
        """Return the first of these settings that the target has; raise `CaseError` if it has none."""
        for name in names:
            if name in self.settings:
                return self.settings[name]
        raise self.node.problem(f"the target '{self.name}' has no `{names[0]}`: add it")


def read_target(project: Path, profile: str, target: str | None, variables_folder: Path) -> Target:
    """Return a target of a profile, by default the one that the profile names.

    Variables are those of the environment, or of the `env_file` of `variables_folder`. Raise `CaseError` if no file has
    the profile, and for a variable that is not set.
    """
    folders = [variable(PROFILES_DIR, variables_folder), project, Path.home() / ".dbt"]
    paths = [Path(folder) / PROFILES for folder in folders if folder]
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        problem = f"no such file, nor one in {PROFILES_DIR} or ~/.dbt: add one, or set {PROFILES_DIR} to its folder"
        raise file_at(project / PROFILES).problem(problem)
    file = file_at(path)
    top = read_yaml(file).root
    if top is None:
        raise file.problem(f"is empty: add the profile '{profile}'")
    profiles = entries(top)
    if profile not in profiles:
        raise top.problem(f"has no profile '{profile}'{did_you_mean(profile, profiles)}")
    parts = entries(profiles[profile])
    if "outputs" not in parts:
        raise profiles[profile].problem(f"the profile '{profile}' has no `outputs`: add them")
    outputs = entries(parts["outputs"])
    name = target or (_expand(parts["target"], variables_folder) if "target" in parts else "default")
    if name not in outputs:
        raise parts["outputs"].problem(f"the profile '{profile}' has no target '{name}'{did_you_mean(name, outputs)}")
    settings = {
        key: _expand(value, variables_folder)
        for key, value in entries(outputs[name]).items()
        if isinstance(value.value, str) and not value.empty
    }
    register_secrets(settings)
    other_targets = [node.value for key, node in outputs.items() if key != name and isinstance(node.value, dict)]
    schemas = {str(output[key].value).lower() for output in other_targets for key in SCHEMAS if key in output}
    return Target(name, outputs[name], settings, frozenset(schemas))


def _expand(node: Node, variables_folder: Path) -> str:
    """Return a text with variables in place of `env_var`; raise `CaseError` for one not set, and for other Jinja."""

    def value_of(match: re.Match[str]) -> str:
        name = match["name"][1:-1]
        value = variable(name, variables_folder)
        if value is None:
            value = match["default"]
            if value is None:
                raise node.problem(f"environment variable '{name}' is not set: set it, or give env_var a default")
            value = value.strip("'\"")
        return value

    text = required_text(node)
    if _JINJA.search(_ENV_VAR.sub("", text)):
        raise node.problem(f"`{node.key}` has Jinja other than {{{{ env_var('NAME') }}}}, which is not expanded")
    return _ENV_VAR.sub(value_of, text)
