"""Makes bakery/bakery.duckdb where dbt is not installed: of the SQL that dbt compiled into the manifest.

With dbt, `dbt build` in the folder bakery makes it.
"""

import json
from graphlib import TopologicalSorter
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory

PROJECT = Path(__file__).with_name("bakery")


def build(project):
    """Run the seeds and models of a project in the order in which they depend on each other."""
    import duckdb

    nodes = json.loads((project / "target/manifest.json").read_bytes())["nodes"]
    needed = {name: nodes.keys() & node["depends_on"].get("nodes", ()) for name, node in nodes.items()}
    with TemporaryDirectory(dir=project) as folder:
        database = Path(folder, "bakery.duckdb")  # the name is that of the database in the SQL
        with duckdb.connect(database) as connection:
            for node in map(nodes.get, TopologicalSorter(needed).static_order()):
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {node['schema']}")
                if node["resource_type"] == "seed":
                    code = f"FROM '{project / node['original_file_path']}'"
                    connection.execute(f"CREATE TABLE {node['relation_name']} AS {code}")
                elif node["relation_name"]:  # else it is a part of the SQL of other models
                    kind = node["config"]["materialized"]
                    connection.execute(f"CREATE {kind} {node['relation_name']} AS {node['compiled_code']}")
        database.replace(project / database.name)


# A look for a module would find the folder example_suite/duckdb, too.
if any(distributions(name="duckdb")) and not (PROJECT / "bakery.duckdb").exists():
    build(PROJECT)
