// A river network, made up: rivers and lakes, what flows into what, and gauges.
CREATE NODE TABLE River (name STRING, km DOUBLE, navigable BOOLEAN, PRIMARY KEY (name));
CREATE NODE TABLE Lake (name STRING, area DECIMAL(8, 2), depth INT64, PRIMARY KEY (name));
CREATE NODE TABLE Gauge (
    code STRING, opened DATE, closed DATE, every INTERVAL, levels DOUBLE[], sensors MAP(STRING, INT64),
    PRIMARY KEY (code)
);
CREATE REL TABLE FLOWS_INTO (FROM River TO River, FROM River TO Lake, FROM Lake TO River, at_km DOUBLE);
CREATE REL TABLE MEASURES (FROM Gauge TO River, FROM Gauge TO Lake, since DATE);

CREATE (:River {name: 'Alder', km: 210.5, navigable: true}),
    (:River {name: 'Birch', km: 42.0, navigable: false}),
    (:River {name: 'Cedar', km: 42.0, navigable: false}),
    (:River {name: 'Dogwood', km: 18.3, navigable: false}),
    (:River {name: 'Elder', km: 96.7, navigable: true}),
    (:River {name: 'Fern', km: 7.9}),
    (:River {name: 'Gorse', km: 64.2, navigable: true}),
    (:River {name: 'Hazel', km: 31.4, navigable: false});
CREATE (:Lake {name: 'Opal', area: 12.50, depth: 31}),
    (:Lake {name: 'Quartz', area: 3.75, depth: 140}),
    (:Lake {name: 'Slate', area: 12.50});

UNWIND [['Birch', 'Alder', '150'], ['Cedar', 'Alder', '88.5'], ['Dogwood', 'Birch', '12'], ['Gorse', 'Elder', '40'],
    ['Fern', 'Dogwood', '3.1']] AS row
MATCH (a:River {name: row[1]}), (b:River {name: row[2]}) CREATE (a)-[:FLOWS_INTO {at_km: to_double(row[3])}]->(b);
UNWIND [['Elder', 'Opal'], ['Hazel', 'Quartz']] AS row
MATCH (a:River {name: row[1]}), (b:Lake {name: row[2]}) CREATE (a)-[:FLOWS_INTO]->(b);
MATCH (a:Lake {name: 'Opal'}), (b:River {name: 'Alder'}) CREATE (a)-[:FLOWS_INTO {at_km: 201.0}]->(b);

CREATE (:Gauge {code: 'G1', opened: date('1998-04-01'), every: interval('15 minutes'), levels: [1.2, 1.4, 1.3],
        sensors: map(['level', 'flow'], [2, 1])}),
    (:Gauge {code: 'G2', opened: date('2004-10-15'), closed: date('2019-12-31'), every: interval('1 hour'),
        levels: [0.4, 0.9], sensors: map(['level'], [1])}),
    (:Gauge {code: 'G3', opened: date('2004-10-15'), every: interval('1 hour'), levels: [2.0],
        sensors: map(['level', 'turbidity'], [1, 1])}),
    (:Gauge {code: 'G4', opened: date('2021-06-30'), every: interval('1 day')});
UNWIND [['G1', 'Alder', '1998-04-01'], ['G2', 'Birch', '2004-10-15'], ['G3', 'Elder', '2005-01-01']] AS row
MATCH (g:Gauge {code: row[1]}), (r:River {name: row[2]}) CREATE (g)-[:MEASURES {since: date(row[3])}]->(r);
MATCH (g:Gauge {code: 'G4'}), (l:Lake {name: 'Opal'}) CREATE (g)-[:MEASURES {since: date('2021-06-30')}]->(l);
