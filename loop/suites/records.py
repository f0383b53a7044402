"""Chores with tables and JSON."""

from __future__ import annotations

import json
import operator
from random import Random
from typing import Any

from loop.suites.making import (
    FIRST,
    FRUIT,
    SALES,
    STAFF,
    Task,
    as_json,
    kind,
    lines,
    sales,
    staff,
    table,
)


@kind("csv")
def rows_equal(r: Random) -> Task:
    t = [*sales(r, 9), ["Oslo", "fig", 3, 4]]
    c = "Oslo"
    s = r.choice(
        [
            f"Keep only the rows of sales.csv where the city is {c} and save them to one.csv",
            f"From sales.csv I want the rows for {c} only. Save as one.csv",
            f"Save all sales from {c} in sales.csv to one.csv",
        ]
    )
    return Task(
        s, {"sales.csv": table(t, SALES)}, {"one.csv": table([x for x in t if x[0] == c], SALES)}
    )


@kind("csv")
def rows_more(r: Random) -> Task:
    t = staff(r)
    n = r.choice([30, 35, 40])
    said, sign = r.choice(
        [
            (f"Save the people in staff.csv who are older than {n} to some.csv", operator.gt),
            (f"Write all rows of staff.csv with age under {n} to some.csv", operator.lt),
            (f"Rows of staff.csv whose age is at least {n} go to some.csv", operator.ge),
        ]
    )
    want = table([x for x in t if sign(x[2], n)], STAFF)
    return Task(said, {"staff.csv": table(t, STAFF)}, {"some.csv": want})


@kind("csv")
def name_of_older(r: Random) -> Task:
    t = staff(r)
    n = r.choice([30, 35, 40])
    s = r.choice(
        [
            f"Write the names of everyone in staff.csv older than {n} to list.txt, one per line",
            f"List the name of each person in staff.csv whose age is above {n} in list.txt",
        ]
    )
    return Task(s, {"staff.csv": table(t, STAFF)}, {"list.txt": lines(x[1] for x in t if x[2] > n)})


@kind("csv")
def column_total(r: Random) -> Task:
    t = sales(r)
    s, e = r.choice(
        [
            (
                "What is the total of the units column in sales.csv? Put it in sum.txt",
                sum(x[2] for x in t),
            ),
            (
                "Add up the price column of sales.csv and write the result to sum.txt",
                sum(x[3] for x in t),
            ),
            ("Save the highest price in sales.csv to sum.txt", max(x[3] for x in t)),
        ]
    )
    return Task(s, {"sales.csv": table(t, SALES)}, {"sum.txt": str(e)})


@kind("csv")
def group_total(r: Random) -> Task:
    t = sales(r, 10)
    g: dict[str, int] = {}
    for x in t:
        g[x[0]] = g.get(x[0], 0) + x[2]
    s = r.choice(
        [
            "Sum the units per city in sales.csv and save as totals.csv",
            "For each city in sales.csv, add up the units. Result in totals.csv",
        ]
    )
    return Task(s, {"sales.csv": table(t, SALES)}, {"totals.csv": g})


@kind("csv")
def sort_rows(r: Random) -> Task:
    t = staff(r)
    s, e = r.choice(
        [
            (
                "Sort staff.csv by age, oldest first, and save it to sorted.csv",
                sorted(t, key=lambda x: -x[2]),
            ),
            ("Order the rows of staff.csv by age into sorted.csv", sorted(t, key=lambda x: x[2])),
            (
                "Sort the table staff.csv by name and write it to sorted.csv",
                sorted(t, key=lambda x: x[1]),
            ),
        ]
    )
    return Task(s, {"staff.csv": table(t, STAFF)}, {"sorted.csv": table(e, STAFF)})


@kind("csv")
def top_rows(r: Random) -> Task:
    t = staff(r)
    n = r.randint(2, 4)
    s = r.choice(
        [
            f"Save the {n} oldest people of staff.csv to top.csv",
            f"Take the {n} rows with the highest age from staff.csv and save them to top.csv",
        ]
    )
    return Task(
        s,
        {"staff.csv": table(t, STAFF)},
        {"top.csv": table(sorted(t, key=lambda x: -x[2])[:n], STAFF)},
    )


@kind("csv")
def pick_columns(r: Random) -> Task:
    t = staff(r)
    s = r.choice(
        [
            "Keep just the columns name and dept of staff.csv in small.csv",
            "Make small.csv with only name and dept from staff.csv",
        ]
    )
    return Task(
        s,
        {"staff.csv": table(t, STAFF)},
        {"small.csv": table([[x[1], x[3]] for x in t], ["name", "dept"])},
    )


@kind("csv")
def drop_column(r: Random) -> Task:
    t = staff(r)
    s = r.choice(
        [
            "Remove the age column from staff.csv and save to noage.csv",
            "Save staff.csv without the column age as noage.csv",
        ]
    )
    return Task(
        s,
        {"staff.csv": table(t, STAFF)},
        {"noage.csv": table([[x[0], x[1], x[3]] for x in t], ["id", "name", "dept"])},
    )


@kind("csv")
def rows_count(r: Random) -> Task:
    t = staff(r, 9)
    s, e = r.choice(
        [
            (
                "How many people in staff.csv work in sales? Save the number to n.txt",
                sum(x[3] == "sales" for x in t),
            ),
            (
                "Count the rows of staff.csv where dept is IT, number into n.txt",
                sum(x[3] == "IT" for x in t),
            ),
        ]
    )
    return Task(s, {"staff.csv": table(t, STAFF)}, {"n.txt": str(e)})


@kind("csv")
def distinct_values(r: Random) -> Task:
    t = sales(r, 9)
    s = r.choice(
        [
            "Which different cities occur in sales.csv? Save them sorted to cities.txt",
            "List every distinct value of the city column in sales.csv, sorted, in cities.txt",
        ]
    )
    return Task(s, {"sales.csv": table(t, SALES)}, {"cities.txt": lines(sorted({x[0] for x in t}))})


@kind("csv")
def join_tables(r: Random) -> Task:
    t = staff(r, 6)
    pay = [[x[0], r.randint(2000, 6000)] for x in t]
    s = r.choice(
        [
            "Combine staff.csv and pay.csv by id and save as full.csv",
            "Add the pay from pay.csv to staff.csv, matching on id, and write full.csv",
        ]
    )
    return Task(
        s,
        {"staff.csv": table(t, STAFF), "pay.csv": table(pay, ["id", "pay"])},
        {"full.csv": table([[*x, p[1]] for x, p in zip(t, pay, strict=False)], [*STAFF, "pay"])},
    )


def tickets(r: Random, n: int = 7) -> list[dict[str, Any]]:
    return [
        {
            "id": i + 1,
            "owner": r.choice(FIRST),
            "state": r.choice(["open", "closed"]),
            "hours": r.randint(1, 20),
        }
        for i in range(n)
    ] + [
        {"id": n + 1, "owner": "Zoe", "state": "open", "hours": 9},
        {"id": n + 2, "owner": "Yan", "state": "closed", "hours": 2},
    ]


@kind("json")
def json_some(r: Random) -> Task:
    t = tickets(r)
    s = r.choice(
        [
            "Save the tickets in tickets.json whose state is open to open.json",
            "Keep only the open tickets of tickets.json in open.json",
        ]
    )
    return Task(
        s, {"tickets.json": as_json(t)}, {"open.json": [x for x in t if x["state"] == "open"]}
    )


@kind("json")
def json_some_field(r: Random) -> Task:
    t = tickets(r)
    s = r.choice(
        [
            "Write the owner of every ticket in tickets.json whose state is closed to owners.txt",
            "List the owners of the closed tickets in tickets.json in owners.txt, one per line",
        ]
    )
    return Task(
        s,
        {"tickets.json": as_json(t)},
        {"owners.txt": lines(x["owner"] for x in t if x["state"] == "closed")},
    )


@kind("json")
def json_value(r: Random) -> Task:
    d: dict[str, Any] = {
        "service": {"name": r.choice(FRUIT), "port": r.randint(1000, 9000)},
        "debug": False,
    }
    s, e = r.choice(
        [
            (
                "What port does settings.json give for the service? Write it to port.txt",
                d["service"]["port"],
            ),
            ("Read service.name from settings.json and save it to port.txt", d["service"]["name"]),
        ]
    )
    return Task(s, {"settings.json": as_json(d)}, {"port.txt": str(e)})


@kind("json")
def json_number(r: Random) -> Task:
    t = tickets(r, r.randint(4, 9))
    s, e = r.choice(
        [
            ("How many tickets are in tickets.json? Number to n.txt", len(t)),
            (
                "Count the tickets in tickets.json with state open and save the count to n.txt",
                sum(x["state"] == "open" for x in t),
            ),
        ]
    )
    return Task(s, {"tickets.json": as_json(t)}, {"n.txt": str(e)})


@kind("json")
def json_table(r: Random) -> Task:
    t = tickets(r)
    s = r.choice(
        [
            "Make a CSV file tickets.csv out of tickets.json with the columns id, owner and hours",
            "Export id, owner and hours from tickets.json to tickets.csv",
        ]
    )
    return Task(
        s,
        {"tickets.json": json.dumps(t)},
        {
            "tickets.csv": table(
                [[x["id"], x["owner"], x["hours"]] for x in t], ["id", "owner", "hours"]
            )
        },
    )


@kind("json")
def csv_json(r: Random) -> Task:
    t = staff(r, 4)
    return Task(
        "Turn staff.csv into JSON and save it as staff.json",
        {"staff.csv": table(t, STAFF)},
        {"staff.json": [dict(zip(STAFF, map(str, x), strict=False)) for x in t]},
    )
