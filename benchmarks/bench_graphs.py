"""Small graphs for SPARQL: survivors that variants kill, and counterexamples to survivors that pass on the source.

The golds are the 50 of ck25, those of the example suite's building, and with an argument 20 on `music.ttl` of the tutorials
at github.com/stardog-union/stardog-tutorials, the path of that file. Needs QUERYEVAL_CONFORMANCE. Each variant and
counterexample is checked in another session: at most 50 triples, no type is missing that the vocabulary implies, and
gold and the other query answer otherwise. What is left alive is listed. Times are of the processor, with the children;
golds and mutants have run on the source before.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median

import pyoxigraph
from bench_strength import ck25_suite, load

from pytest_queryeval.core.model import Case, QueryOrAnswer
from pytest_queryeval.evaluation.session import Session
from pytest_queryeval.features.strength import Mutant
from pytest_queryeval.features.strength.case_strength import is_right, measure_strength
from pytest_queryeval.features.strength.counterexample import find_counterexample
from pytest_queryeval.features.strength.strengthen_command import build_variants
from pytest_queryeval.suites import load_suites

RDFS = "http://www.w3.org/2000/01/rdf-schema#"
EXAMPLES = Path(__file__).parents[1] / "example_suite" / "sparql"
# What data may keep of a vocabulary: the statement, what has an instance, and what that has to have.
AXIOMS = {
    "domain": ("?x <{0}> ?y", "?x a <{1}>"),
    "range": ("?y <{0}> ?x", "?x a <{1}>"),
    "subClassOf": ("?x a <{0}>", "?x a <{1}>"),
}
MUSIC_GOLDS = (
    "SELECT ?album { ?album a :Album ; :artist :The_Beatles }",
    "SELECT ?name { ?album a :Album ; :artist ?artist . ?artist a :SoloArtist ; :name ?name }",
    "SELECT ?album ?date { ?album a :Album ; :date ?date } ORDER BY DESC(?date) LIMIT 5",
    "SELECT ?artist (COUNT(?album) AS ?n) { ?album a :Album ; :artist ?artist } GROUP BY ?artist ORDER BY DESC(?n) LIMIT 3",
    "SELECT DISTINCT ?member { :The_Beatles :member ?member }",
    "SELECT ?band { ?band a :Band ; :member ?a, ?b FILTER (?a != ?b) } LIMIT 4",
    "SELECT ?song ?length { ?song a :Song ; :length ?length FILTER (?length > 1200) }",
    "SELECT (AVG(?length) AS ?mean) { ?song a :Song ; :length ?length }",
    "SELECT ?album { ?album a :Album ; :date ?date FILTER (YEAR(?date) = 1970) }",
    "SELECT DISTINCT ?producer { ?album :producer ?producer . ?producer a :SoloArtist }",
    "SELECT ?album { ?album a :Album FILTER NOT EXISTS { ?album :producer ?producer } }",
    "SELECT ?song { ?song a :Song ; :writer :Paul_McCartney, :John_Lennon }",
    "SELECT ?album ?producer { ?album :artist :Queen_\\(band\\) OPTIONAL { ?album :producer ?producer } }",
    "SELECT ?writer (COUNT(DISTINCT ?song) AS ?n) { ?song :writer ?writer } GROUP BY ?writer HAVING (COUNT(DISTINCT ?song) > 20)",
    "SELECT ?artist { { ?artist a :Band } UNION { ?artist a :SoloArtist } ?album :artist ?artist ; :name 'Imagine' }",
    "SELECT ?song { ?album :track ?song . ?album :artist :Madonna_\\(entertainer\\) MINUS { ?song :length ?length } }",
    "SELECT ?name { ?band a :Band ; :name ?name FILTER (CONTAINS(LCASE(?name), 'rolling')) }",
    "SELECT ?a ?b { ?a :artist ?x ; :date ?day . ?b :artist ?y ; :date ?day FILTER (?x != ?y && STR(?a) < STR(?b)) } LIMIT 3",
    "ASK { ?album a :Album ; :artist ?artist ; :producer ?artist }",
    "SELECT ?artist (MIN(?date) AS ?first) { ?album :artist ?artist ; :date ?date } GROUP BY ?artist ORDER BY ?first LIMIT 5",
)


def main() -> None:
    conformance = Path(os.environ["QUERYEVAL_CONFORMANCE"]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        measure("ck25", load(Path(folder), ck25_suite(conformance / "ck25")), [*(conformance / "ck25").glob("*.ttl")])
    suites = load_suites(EXAMPLES, require_prediction=False)
    cases = [case for suite in suites for case in suite.cases if "building" in suite.path.name]
    measure("the example suite", cases, [EXAMPLES / "building.ttl"])
    for file in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            source = {"rdf": str(Path(file).resolve()), "prefixes": {"": "http://stardog.com/tutorial/"}}
            cases = [{"id": str(number), "gold": gold} for number, gold in enumerate(MUSIC_GOLDS)]
            suite = {"kind": "sparql", "source": source, "cases": cases}
            measure("music", load(Path(folder), suite), [Path(file)])


def measure(name: str, cases: list[Case] | tuple[Case, ...], files: list[Path]) -> None:
    axioms = kept_axioms(files)
    with Session() as session, Session() as fresh:
        strengths = [strength for case in cases if (strength := measure_strength(case, session)) is not None]
        survivors = [(strength.case, mutant) for strength in strengths for mutant in strength.survivors]
        began = used(session)
        variants = list(build_variants(strengths, session))
        seconds = used(session) - began
        for variant in variants:
            check(variant.script, axioms, [(case, mutant.query) for case, mutant in variant.kills], fresh)
        killed = {(id(case), mutant) for variant in variants for case, mutant in variant.kills}
        sizes = [triple_count(variant.script) for variant in variants]
        implied = sum(
            bool(mutant.equivalent.startswith("the vocabulary")) for s in strengths for mutant in s.equivalent
        )
        print(f"{name}: {len(axioms):,} kept axioms; {implied} patterns that these imply are equivalent")
        print(
            f"  {len(killed):,} of {len(survivors):,} survivors killed ({len(killed) / len(survivors):.1%}) by "
            f"{len(variants)} variants of at most {max(sizes)} triples, {seconds / len(survivors):.3f} s each"
        )
        report_counterexamples(survivors, axioms, session, fresh)
        for case, mutant in survivors:
            if (id(case), mutant) not in killed:
                print(f"    alive: {case.id}: {mutant.clause}: {mutant.change}")


def report_counterexamples(
    survivors: list[tuple[Case, Mutant]], axioms: dict[str, str], session: Session, fresh: Session
) -> None:
    sizes, times, vain_times = [], [], []
    for case, mutant in survivors:
        began = used(session)
        gold = case.golds[0].query or ""
        example = find_counterexample(case, gold, mutant.query, session).counterexample
        (vain_times if example is None else times).append(used(session) - began)
        if example is not None:
            sizes.append(triple_count(example.script))
            check(example.script, axioms, [(case, mutant.query)], fresh)
    print(
        f"  {len(sizes):,} counterexamples, median {median(sizes):g} triples, at most {max(sizes)}; "
        f"{median(times):.3f} s, {median(vain_times or [0]):.3f} s where none is found (medians)"
    )


def kept_axioms(files: list[Path]) -> dict[str, str]:
    """Return for each statement that the data keep, and have instances of, the query for an exception."""
    store = pyoxigraph.Store()
    for file in files:
        store.load(path=str(file))
    graphs = {}
    for relation, (premise, conclusion) in AXIOMS.items():
        for row in store.query(f"SELECT ?a ?b {{ ?a <{RDFS}{relation}> ?b FILTER (isIRI(?a) && isIRI(?b)) }}"):
            ends = row["a"].value, row["b"].value
            pattern = premise.format(*ends)
            exception = f"ASK {{ {pattern} FILTER NOT EXISTS {{ {conclusion.format(*ends)} }} }}"
            if store.query(f"ASK {{ {pattern} }}") and not store.query(exception):
                graphs[f"{relation} {ends}"] = exception
    return graphs


def check(script: str, axioms: dict[str, str], pairs: list[tuple[Case, str]], fresh: Session) -> None:
    """Assert that a graph is small and keeps the axioms, and that both queries of each pair differ in another session."""
    store = pyoxigraph.Store()
    store.load(script, format=pyoxigraph.RdfFormat.TURTLE)
    assert len(store) <= 50, script
    broken = [name for name, exception in axioms.items() if store.query(exception)]
    assert not broken, (broken, script)
    for case, query in pairs:
        assert case.settings.source is not None
        source = fresh.build(case.settings.source, script)
        replayed = replace(case, settings=replace(case.settings, source=source))
        golds = [fresh.execute(gold, replayed) for gold in case.golds]
        assert not any(gold.error for gold in golds), script
        assert not is_right(fresh.execute(QueryOrAnswer(query=query), replayed), golds, replayed, fresh), script


def triple_count(script: str) -> int:
    return len(list(pyoxigraph.parse(script, format=pyoxigraph.RdfFormat.TURTLE)))


def used(session: Session) -> float:
    """Return the processor's seconds of this process and its children, those that run included."""
    times = os.times()
    seconds = times.user + times.system + times.children_user + times.children_system
    for task in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = task.read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


if __name__ == "__main__":
    main()
