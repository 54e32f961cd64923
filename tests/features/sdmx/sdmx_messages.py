"""Structure messages of a shop: SDMX-ML 2.1 and 3.0, and SDMX-JSON.

The dataflow SHOP:SALES has the dimensions AREA, GOODS, FREQUENCY and REMARK, and time. AREA has a codelist of its own,
GOODS has that of its concept, the concept of FREQUENCY is in none of the messages, and REMARK may be any text.
"""

import json
import re

V21 = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1"
AREAS = {"NO": "North", "SO": "South", "EA": "East", "WE": "West"}
GOODS = {"TEA": "Tea", "COF": "Coffee", "_T": "All goods "}
FREQUENCIES = {"A": "Annual", "M": "Monthly"}


def message(*parts, version="v2_1"):
    """The bytes of an SDMX-ML message with some parts of its structures."""
    base = f"http://www.sdmx.org/resources/sdmxml/schemas/{version}"
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<mes:Structure xmlns:mes="{base}/message" xmlns:str="{base}/structure" xmlns:com="{base}/common">
  <mes:Header>
    <mes:ID>SHOP1</mes:ID><mes:Test>false</mes:Test><mes:Prepared>2024-05-01T09:00:00Z</mes:Prepared>
    <mes:Sender id="SHOP"/>
  </mes:Header>
  <mes:Structures>{"".join(parts)}</mes:Structures>
</mes:Structure>""".encode()


def code_list(name, codes, *, version="1.0", locale="en", more=""):
    items = "".join(
        f'<str:Code id="{code}"><com:Name xml:lang="fr">{text} en français</com:Name>'
        f'<com:Name xml:lang="{locale}">{text}</com:Name></str:Code>'
        for code, text in codes.items()
    )
    head = f'<str:Codelist id="{name}" agencyID="SHOP" version="{version}" {more}>'
    return f'<str:Codelists>{head}<com:Name xml:lang="en">{name}</com:Name>{items}</str:Codelist></str:Codelists>'


def reference(kind, name, *, scheme=None, version="1.0"):
    package = {"Concept": "conceptscheme", "Codelist": "codelist"}.get(kind, "datastructure")
    within = f'maintainableParentID="{scheme}" maintainableParentVersion="{version}"' if scheme else ""
    version = "" if scheme else f'version="{version}"'
    return f'<Ref id="{name}" agencyID="SHOP" {version} {within} package="{package}" class="{kind}"/>'


def enumeration(name, version="1.0"):
    return f"<str:Enumeration>{reference('Codelist', name, version=version)}</str:Enumeration>"


def dimension(name, *, concept=None, scheme="CS_SHOP", own="", sort="Dimension", position=None):
    place = "" if position is None else f'position="{position}"'
    local = f"<str:LocalRepresentation>{own}</str:LocalRepresentation>" if own else ""
    identity = reference("Concept", concept or name, scheme=scheme)
    return f"""<str:{sort} id="{name}" {place}>
      <str:ConceptIdentity>{identity}</str:ConceptIdentity>{local}</str:{sort}>"""


TEXT = '<str:TextFormat textType="String"/>'
TIME = dimension(
    "TIME_PERIOD", own='<str:TextFormat textType="ObservationalTimePeriod"/>', sort="TimeDimension", scheme="CS_TIME"
)
DIMENSIONS = (
    dimension("AREA", own=enumeration("CL_AREA"), position=1),
    dimension("GOODS", position=2),
    dimension("FREQUENCY", concept="FREQ", scheme="CS_ELSEWHERE", position=3),
    dimension("REMARK", own=TEXT, position=4),
    TIME,
)


def data_structure(*dimensions, name="DSD_SALES", version="1.0", more=""):
    text = "".join(dimensions or DIMENSIONS)
    return f"""<str:DataStructures><str:DataStructure id="{name}" agencyID="SHOP" version="{version}" {more}>
      <com:Name xml:lang="en">Sales</com:Name>
      <str:DataStructureComponents><str:DimensionList id="DimensionDescriptor">{text}</str:DimensionList>
      </str:DataStructureComponents></str:DataStructure></str:DataStructures>"""


def dataflow(name="SALES", structure="DSD_SALES", version="2.0"):
    return f"""<str:Dataflows><str:Dataflow id="{name}" agencyID="SHOP" version="{version}">
      <com:Name xml:lang="en">Sales</com:Name>
      <str:Structure>{reference("DataStructure", structure)}</str:Structure></str:Dataflow></str:Dataflows>"""


def concepts():
    return f"""<str:Concepts><str:ConceptScheme id="CS_SHOP" agencyID="SHOP" version="1.0">
      <com:Name xml:lang="en">Concepts</com:Name>
      <str:Concept id="AREA"><com:Name xml:lang="en">Area</com:Name></str:Concept>
      <str:Concept id="GOODS"><com:Name xml:lang="en">Goods</com:Name>
        <str:CoreRepresentation>{enumeration("CL_GOODS")}</str:CoreRepresentation></str:Concept>
      <str:Concept id="REMARK"><com:Name xml:lang="en">Remark</com:Name></str:Concept>
    </str:ConceptScheme></str:Concepts>"""


def lists():
    return (code_list("CL_AREA", AREAS), code_list("CL_GOODS", GOODS), code_list("CL_FREQ", FREQUENCIES))


def shop():
    """All of it in one message."""
    return message(dataflow(), *map(_joined, [lists()]), concepts(), data_structure())


def _joined(codelists):
    """Codelists in the one element that a message may have for them."""
    return "".join(codelists).replace("</str:Codelists><str:Codelists>", "")


def shop_3_0():
    """The same in SDMX-ML 3.0, which refers by names alone."""

    def named(found):
        words = dict(re.findall(r'(\w+)="([^"]*)"', found[1]))
        scheme = words.get("maintainableParentID")
        version = words.get("version") or words["maintainableParentVersion"]
        tail = f"{scheme}({version}).{words['id']}" if scheme else f"{words['id']}({version})"
        return f"urn:sdmx:org.sdmx.infomodel.{words['package']}.{words['class']}={words['agencyID']}:{tail}"

    text = re.sub(r"<Ref ([^>]*)/>", named, shop().decode())
    text = text.replace("v2_1", "v3_0").replace("str:Concepts>", "str:ConceptSchemes>")
    return text.encode()


def urn(kind, name):
    return f"urn:sdmx:org.sdmx.infomodel.x.{kind}=SHOP:{name}"


def _json_list(name, codes, **more):
    items = [{"id": code, "name": text, "names": {"fr": "?", "en-GB": text}} for code, text in codes.items()]
    return {"id": name, "agencyID": "SHOP", "version": "1.0", "codes": items, **more}


def _json_dimension(name, *, concept=None, scheme="CS_SHOP", **more):
    return {"id": name, "conceptIdentity": urn("Concept", f"{scheme}(1.0).{concept or name}"), **more}


def shop_document():
    """The same as the document of an SDMX-JSON message."""
    goods = {"id": "GOODS", "coreRepresentation": {"enumeration": urn("Codelist", "CL_GOODS(1.0)")}}
    area = {"enumeration": urn("Codelist", "CL_AREA(1.0)")}
    text = {"textFormat": {"textType": "String"}}
    dimensions = [
        _json_dimension("AREA", localRepresentation=area),
        _json_dimension("GOODS"),
        _json_dimension("FREQUENCY", concept="FREQ", scheme="CS_ELSEWHERE"),
        _json_dimension("REMARK", localRepresentation=text),
    ]
    time = {"id": "TIME_PERIOD", "localRepresentation": {"textFormat": {"textType": "ObservationalTimePeriod"}}}
    entry = {"dimensions": dimensions, "timeDimensions": [time]}
    shared = {"agencyID": "SHOP", "version": "1.0"}
    sales = {"id": "SALES", "agencyID": "SHOP", "version": "2.0", "structure": urn("DataStructure", "DSD_SALES(1.0)")}
    return {
        "meta": {"id": "SHOP1"},
        "data": {
            "dataflows": [sales],
            "dataStructures": [{"id": "DSD_SALES", **shared, "dataStructureComponents": {"dimensionList": entry}}],
            "conceptSchemes": [{"id": "CS_SHOP", **shared, "concepts": [{"id": "AREA"}, goods, {"id": "REMARK"}]}],
            "codelists": [
                _json_list("CL_AREA", AREAS),
                _json_list("CL_GOODS", GOODS),
                _json_list("CL_FREQ", FREQUENCIES),
            ],
        },
    }


def structure_document(datasets, codes):
    """An SDMX-JSON document of data structures, each an agency, an id, a version and dimensions; some have codes."""

    def represented(name):
        coded = {"enumeration": urn("Codelist", f"CL_{name}(1.0)")}
        return _json_dimension(name, localRepresentation=coded if name in codes else {"textFormat": {}})

    structures = [
        {"id": name, "agencyID": agency, "version": version}
        | {"dataStructureComponents": {"dimensionList": {"dimensions": [*map(represented, dimensions)]}}}
        for agency, name, version, dimensions in datasets
    ]
    return {
        "data": {
            "dataStructures": structures,
            "codelists": [_json_list(f"CL_{name}", of) for name, of in codes.items()],
        }
    }


def shop_json():
    return json.dumps(shop_document()).encode()
