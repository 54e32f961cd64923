"""What holds for every engine, on the river network of the suite."""

import pytest

from pytest_queryeval.core.model import Source
from pytest_queryeval.testing import EngineContract


@pytest.fixture
def engine(graph):
    return graph


class TestLadybug(EngineContract):
    answers = {
        "MATCH (r:River) WHERE r.km < 20 RETURN r.name AS name, r.km AS km ORDER BY km": (
            ("name", "km"),
            [("Fern", 7.9), ("Dogwood", 18.3)],
        ),
        "MATCH (r:River) WHERE r.km < 0 RETURN r.name AS name": (("name",), []),
        "RETURN NULL AS a, 7 / 2 AS b, true AS c, 'a\nb; // c' AS d;": (
            ("a", "b", "c", "d"),
            [(None, 3, True, "a\nb; // c")],
        ),
    }
    failures = {
        "unsafe": [
            "CREATE (:Lake {name: 'Agate'})",
            "MERGE (l:Lake {name: 'Agate'}) RETURN l",
            "MATCH (l:Lake) SET l.depth = 0",
            "MATCH (l:Lake) DETACH DELETE l",
            "MATCH (l:Lake) WITH l CREATE (:Lake {name: 'Agate'}) RETURN l",
            "DROP TABLE Lake",
            "ALTER TABLE Lake ADD age INT64",
            "CREATE NODE TABLE Well (name STRING, PRIMARY KEY (name))",
            "BEGIN TRANSACTION",
            "CHECKPOINT",
            "LOAD FROM '{folder}/secret.csv' RETURN *",
            "load\n/* */ from '{folder}/secret.csv' return *",
            "MATCH (l:Lake) LOAD FROM '{folder}/secret.csv' RETURN *",
            "MATCH (l:Lake) WHERE l.name = '\\'' LOAD WITH HEADERS (a STRING) FROM '{folder}/secret.csv' RETURN a",
            "UNWIND [1] AS x CALL show_tables() RETURN *",
            "CALL show_tables() RETURN *",
            "CALL threads = 8",
            "COPY (MATCH (l:Lake) RETURN l.name) TO '{folder}/out.csv'",
            "COPY Lake FROM '{folder}/secret.csv'",
            "EXPORT DATABASE '{folder}/out'",
            "IMPORT DATABASE '{folder}/out'",
            "ATTACH '{folder}/other.lbug' AS other (dbtype lbug)",
            "INSTALL httpfs",
            "LOAD EXTENSION '{folder}/secret.csv'",
            "RETURN 1; COPY (RETURN 1) TO '{folder}/out.csv'",
            "RETURN ';' ; INSTALL httpfs",
            "EXPLAIN MATCH (l:Lake) RETURN l",
        ],
        "invalid": [
            "MATCH (r:River) RETURN r.length",
            "MATCH (r:Rivers) RETURN r",
            "MATCH (r:River RETURN r",
            "SELECT 1",
            "// nothing",
            "RETURN date('99999-01-01')",  # ends the process
        ],
        "too_large": ["UNWIND range(1, 1001) AS x RETURN x", "RETURN size(repeat('a', 1000000000))"],
        "timeout": [
            "UNWIND range(1, 100000000) AS x UNWIND range(1, 1000000) AS y RETURN sum(x + y)",
            "RETURN size(repeat('a', 100000000))",  # which no interrupt reaches
        ],
    }
    rows = "UNWIND range(1, {count}) AS i RETURN i"
    state = "MATCH (n) RETURN n"
    schema = {"river": ("name", "km", "navigable")}
    ddl = (
        "CREATE NODE TABLE Lake (name STRING, area DECIMAL(8, 2), depth INT64, PRIMARY KEY (name));",
        "CREATE REL TABLE MEASURES (FROM Gauge TO River, FROM Gauge TO Lake, since DATE);",
    )
    seconds = 60.0

    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        """No query reads what is in the folder, or adds to it."""
        self.path = tmp_path
        (tmp_path / "secret.csv").write_text("a\n1\n", encoding="utf-8")
        yield
        assert [path.name for path in tmp_path.iterdir() if path.suffix in (".csv", "")] == ["secret.csv"]

    def filled(self, query):
        return query.replace("{folder}", str(self.path))

    def broken_sources(self, folder):
        (folder / "bad.cypher").write_text("CREATE NODE TABLE A (n INT64, PRIMARY KEY (n));\n\nCREATE (:B {n: 1});\n")
        (folder / "empty.lbug").touch()
        (folder / "text.lbug").write_bytes(b"no graph" * 1_000)
        for settings, reason in (
            ({"script": "bad.cypher"}, "bad.cypher:3: Table B does not exist"),
            ({"path": "empty.lbug"}, "empty.lbug"),
            ({"path": "text.lbug"}, "text.lbug"),
            ({"path": "gone.lbug"}, "gone.lbug: no such file"),
        ):
            yield Source(name="broken", engine="ladybug", settings=settings, folder=folder), reason
