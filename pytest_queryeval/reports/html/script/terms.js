// RDF terms as SPARQL writes them: IRIs with the prefixes of the queries.

const WELL_KNOWN = new Map([
  ["rdf:", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"],
  ["rdfs:", "http://www.w3.org/2000/01/rdf-schema#"],
  ["xsd:", "http://www.w3.org/2001/XMLSchema#"],
  ["owl:", "http://www.w3.org/2002/07/owl#"],
  ["skos:", "http://www.w3.org/2004/02/skos/core#"],
  ["foaf:", "http://xmlns.com/foaf/0.1/"],
  ["dcterms:", "http://purl.org/dc/terms/"],
  ["schema:", "https://schema.org/"],
  ["geo:", "http://www.opengis.net/ont/geosparql#"],
  ["wd:", "http://www.wikidata.org/entity/"],
  ["wdt:", "http://www.wikidata.org/prop/direct/"],
  ["dbr:", "http://dbpedia.org/resource/"],
  ["dbo:", "http://dbpedia.org/ontology/"],
]);
const DECLARATION = /(?<![\p{L}\p{N}_?$])prefix\s+([\p{L}\p{N}_.-]*:)\s*<([^<>\s]+)>/giu;
const TERM = /^(?<literal>"[^]*"\^\^)?<(?<iri>[^<>]*)>$/u;
const LOCAL = /^[\p{L}\p{N}_](?:[\p{L}\p{N}_.-]*[\p{L}\p{N}_-])?$/u;

class Terms {
  // A prefix stands for one namespace in all cells: gold's, where both queries declare it.
  constructor(...queries) {
    const prefixes = new Map();
    const declared = queries.flatMap((query) => Array.from((query ?? "").matchAll(DECLARATION), ([, prefix, namespace]) => [prefix, namespace]));
    for (const [prefix, namespace] of [...declared, ...WELL_KNOWN]) if (!prefixes.has(prefix)) prefixes.set(prefix, namespace);
    this.prefixes = [...prefixes];
  }

  isNumber(value) {
    return typeof value === "string" && /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(value);
  }

  shown(value) {
    const { literal = "", iri } = TERM.exec(value)?.groups ?? {};
    const [prefix, namespace] = this.prefixes.find(([, known]) => iri?.startsWith(known) && LOCAL.test(iri.slice(known.length))) ?? [];
    if (prefix === undefined) return valueText(value);
    return [literal, make("span", { class: "term", title: `<${iri}>` }, make("span", { class: "quiet" }, prefix), iri.slice(namespace.length))];
  }
}
