"""Descriptions of keys that editors show on hover and beside completions; docs/suites.md has the details."""

from __future__ import annotations

COMPARE_DESCRIPTIONS = {
    "numbers": "the tolerance: x equals y if |x - y| <= max(rel * max(|x|, |y|), abs); default: 1e-6, 1e-9 (floats)",
    "text_numbers": 'true: the text "5" equals the number 5; default: false, for sparql true',
    "case": "ignore: upper and lower case are equal; default: keep",
    "whitespace": "ignore: runs of white space equal one space, and none at the ends; default: keep",
    "nulls": "NULL equals NULL and nothing else",
    "dates": "by_value (default): dates equal their ISO text, and times the same moment in another zone",
    "duplicates": "ignore: rows are a set; default: count",
    "row_order": "whether the order of rows counts; auto (default): where gold orders them",
    "columns": "any (default): the best alignment; positional; by_name",
    "extra_columns": "allow: predicted may have columns that gold does not have; default: reject",
    "gold_columns": "names or positions, from 0, of the columns of gold that count; predicted may have others",
    "rdf_terms": "value (default): literals are equal when their values are; strict: also datatype and language",
}
TABLE_DESCRIPTIONS = {
    "file": "an .xlsx, .csv, .tsv or .parquet file, each row of which is a case",
    "sheet": "the sheet of a workbook; default: the first one",
    "delimiter": "what separates the cells of a CSV file; default: a comma",
    "header_row": "the row with the headers, as the spreadsheet numbers it; default: the first row with text",
    "columns": "the headers of keys, where they are not called so; null for a key without a column",
    "metadata": "the headers of columns that become metadata, or rest for all that are not read otherwise",
}
