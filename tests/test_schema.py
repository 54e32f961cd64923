import pytest

from pytest_queryeval.core.db_schema import Schema, schema_of_columns, schema_of_entry

ENTRY = {
    "db_id": "concerts",
    "table_names_original": ["Singer", "Concert"],
    "column_names_original": [[-1, "*"], [0, "Id"], [0, "Name"], [1, "Id"], [1, "Singer_Id"]],
    "foreign_keys": [[4, 1]],
}
CONCERTS = Schema(
    tables={"singer": ("id", "name"), "concert": ("id", "singer_id")},
    foreign_keys=((("concert", "singer_id"), ("singer", "id")),),
)


def entry(**changes):
    return ENTRY | changes


def test_an_entry_of_spiders_file_is_a_schema_in_lower_case():
    assert schema_of_entry(ENTRY) == CONCERTS


def test_columns_as_an_engine_lists_them_are_the_same_schema():
    columns = [
        ("Singer", "Id", "INTEGER", None, None),
        ("Singer", "Name", None, None, None),
        ("Concert", "Id", "INTEGER", None, None),
        ("Concert", "Singer_Id", "INTEGER", "Singer", "ID"),
    ]

    assert schema_of_columns(columns) == CONCERTS


def test_a_column_with_two_foreign_keys_is_one_column():
    columns = [("a", "x", "int", "b", "y"), ("a", "x", "int", "c", "z")]

    assert schema_of_columns(columns) == Schema(
        tables={"a": ("x",)}, foreign_keys=((("a", "x"), ("b", "y")), (("a", "x"), ("c", "z")))
    )


def test_a_key_whose_other_side_is_unknown_is_none():
    assert schema_of_columns([("a", "x", "int", "b", None)]).foreign_keys == ()


def test_there_may_be_no_columns_and_no_keys():
    assert schema_of_columns([]) == Schema()
    assert schema_of_entry({"table_names_original": ["a"], "column_names_original": []}) == Schema(tables={"a": ()})


@pytest.mark.parametrize(
    "changes",
    [
        {"table_names_original": None},
        {"table_names_original": 5},
        {"table_names_original": [1, 2]},
        {"column_names_original": ["Id", "Name"]},
        {"column_names_original": [[0, "Id"], [0]]},
        {"column_names_original": [[0, None]]},
        {"column_names_original": [[2, "Id"]]},
        {"column_names_original": [[-2, "Id"]]},
        {"column_names_original": [["0", "Id"]]},
        {"column_names_original": [[float("inf"), "Id"]]},
        {"column_names_original": [[True, "Id"]]},
        {"foreign_keys": 7},
        {"foreign_keys": None},
        {"foreign_keys": [[1]]},
        {"foreign_keys": [[1, 2, 3]]},
        {"foreign_keys": [[4, 5]]},
        {"foreign_keys": [[4, -1]]},
        {"foreign_keys": [[0, 1]]},
        {"foreign_keys": [["4", "1"]]},
    ],
    ids=str,
)
def test_what_is_no_such_entry_is_refused_and_never_guessed(changes):
    with pytest.raises((KeyError, IndexError, TypeError, ValueError)):
        schema_of_entry(entry(**changes))


@pytest.mark.parametrize("key", ["table_names_original", "column_names_original"])
def test_an_entry_needs_its_tables_and_its_columns(key):
    with pytest.raises(KeyError):
        schema_of_entry({name: value for name, value in ENTRY.items() if name != key})


def test_many_tables_with_many_columns_are_read_in_one_pass():
    count = 30_000
    schema = schema_of_entry(
        {
            "table_names_original": [f"T{number}" for number in range(count)],
            "column_names_original": [[number, "C"] for number in range(count)],
        }
    )

    assert len(schema.tables) == count
    assert schema.tables["t7"] == ("c",)
