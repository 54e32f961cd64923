"""Makes bakery/target/manifest.json: what `dbt build` writes, without macros and without what tells of the machine.

Needs dbt-duckdb, in any environment whose `dbt` is on the path: python make_manifest.py
"""

import json
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

PROJECT = Path(__file__).with_name("bakery")
METADATA = ("dbt_schema_version", "dbt_version", "project_name", "adapter_type")
KEPT = ("nodes", "sources", "disabled")


def made_by_dbt(folder):
    """The manifest of a copy of the project, which dbt builds in a folder."""
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("target", "*.duckdb"))
    subprocess.run(["dbt", "--quiet", "build"], cwd=folder, check=True)  # noqa: S607 - the one on the path
    return json.loads((folder / "target/manifest.json").read_bytes())


def without_machine(manifest):
    for node in (*manifest["nodes"].values(), *manifest["sources"].values()):
        node.pop("root_path", None)
        node.get("depends_on", {}).pop("macros", None)
        node["created_at"] = 0.0
    metadata = {name: manifest["metadata"][name] for name in METADATA}
    return {"metadata": metadata, **{name: manifest[name] for name in KEPT}, "macros": {}}


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        made = without_machine(made_by_dbt(Path(folder, "bakery")))
    path = PROJECT / "target/manifest.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
