"""What is understood word for word is carried out: real tools give what plain Python computes."""

from __future__ import annotations

import pytest

from loop.kit import Kit
from loop.means import candidates_of, fits_heads
from loop.mentions import find_mentions
from loop.reference import expected, same
from loop.survey import survey
from loop.wording import readings
from openry.capability import invoke
from openry.capability.registry import load_registry
from openry.config import load_config
from openry.forwarder import Hand
from openry.models import RunContext

FILES = {
    "birds.txt": "owl one\nwren two\nowl three\nkite\n\nred owl four\nkite\nhen. owl\n",
    "fish.txt": "cod\ncarp\npike\ncarp\ncod\ncarp\n",
    "lakes.txt": "perch\npike\ncarp\n",
    "people.txt": "Ivo Tal\nUma Berg\nEdo Novak\n",
    "marks.txt": "4\n19\n7\n25\n12\n",
    "bus.log": "07:59:59 bus left\n08:30:00 bus late 09:00\n09:15:10 tram late\n11:00:00 bus\n",
    "days.log": "2026-01-02 10:00 rain\n2026-01-03 07:00 sun\n2026-02-01 09:00 rain\n",
    "post.txt": "write to a.b@ex.org or c@ex.org\nsee https://ex.org/x or 10.1.2.3 and 10.1.2.3\n",
    "app.conf": "# port\nport = 80\nname = x\n",
    "trips.csv": "town,km,year\nRome,120,2024\nOslo,80,2025\nRome,15,2023\nBonn,99,2021\n",
    "more.csv": "km,town,year\n7,Bari,2020\n",
    "hotels.csv": "town,stars\nRome,4\nOslo,3\nBonn,5\n",
    "crew.csv": "name,age,ship\nIna,40,Argo\nUwe,31,Beda\nLea,52,Argo\n",
    "set.json": '[{"name": "cup", "price": 3}, {"name": "pan", "price": 12}, '
    '{"name": "jug", "price": 7}]\n',
}
TASKS = """
Keep the lines of birds.txt with 'owl' or 'kite' in out.txt
Keep the lines of birds.txt containing both 'owl' and 'red' in out.txt
Keep the lines of birds.txt with 'owl' but without 'red' in out.txt
Keep the lines of birds.txt that do not contain 'owl' in out.txt
Drop the lines of birds.txt that contain 'owl' or 'wren', rest to out.txt
Save the lines of birds.txt with the exact word 'hen' to out.txt
The first 2 lines of birds.txt that contain 'owl' to out.txt
The last line of birds.txt that contains 'owl' to out.txt
Lines of birds.txt longer than 7 characters to out.txt
Lines of birds.txt with at most 4 characters to out.txt
How many blank lines are in birds.txt? Number to out.txt
How many lines of birds.txt mention 'owl' or 'kite'? Number to out.txt
Lines 2 to 4 of birds.txt into out.txt
Line 3 of birds.txt into out.txt
Everything from line 3 on of birds.txt into out.txt
The lines of bus.log after 08:15 to out.txt
The lines of bus.log before 09:15:11 to out.txt
Every entry of bus.log between 08:00 and 09:30 to out.txt
The 'bus' lines of bus.log after 08:00 to out.txt
How many lines of bus.log contain 'late' after 08:45? Number to out.txt
The entries of days.log since 2026-01-03 to out.txt
The lines of days.log from 2026-01-02 to out.txt
The numbers of marks.txt greater than 10 to out.txt
The values in marks.txt between 5 and 20 to out.txt
How many numbers in marks.txt are below 12? Number to out.txt
Which lines of fish.txt occur more than once? Save each once to out.txt
Which line of fish.txt occurs most often? Save it to out.txt
The last word of each line of people.txt to out.txt
Sort people.txt by last name into out.txt
Remove the text 'owl' from every line of birds.txt into out.txt
Replace the dots in post.txt with dashes and save to out.txt
Put '* ' in front of each line of fish.txt in out.txt
Append ';' to each line of fish.txt, out.txt
Turn the lines of fish.txt into a single line with '-' between them in out.txt
Split post.txt at ' or ' into lines, out.txt
The lines of lakes.txt that are not in fish.txt to out.txt
Which lines are in both lakes.txt and fish.txt? Save those to out.txt
Collect all email addresses of post.txt in out.txt
Get the distinct IP addresses out of post.txt into out.txt
Set the port in app.conf to 8080 and save it as out.conf
Make a copy of fish.txt called out.txt
The rows of trips.csv whose town is Rome to out.csv
Rows of trips.csv with km over 90 to out.csv
Rows of trips.csv with km between 50 and 110 to out.csv
All trips from Rome of trips.csv to out.csv
Every row of trips.csv except those where town is Rome to out.csv
Keep the people of crew.csv older than 35 in out.csv
The name of everyone in crew.csv older than 35 to out.txt
How many people in crew.csv are younger than 50? Number to out.txt
The name of the oldest person in crew.csv to out.txt
The 2 oldest people of crew.csv to out.csv
The 2 rows of trips.csv with the lowest km to out.csv
Sort crew.csv by age, youngest first, into out.csv
The distinct towns of trips.csv, sorted, to out.txt
Remove the year column from trips.csv into out.csv
What are the column names of trips.csv? To out.txt
Sum the km per town in trips.csv and save it as out.csv
How many trips are there for each town in trips.csv? Save as out.csv
Join trips.csv and hotels.csv by town into out.csv
Join trips.csv and more.csv into out.csv, the header only once
Join trips.csv and more.csv into out.csv, both with their header
Join trips.csv and hotels.csv into out.csv
Keep the goods of set.json whose price is over 5 in out.json
The name of every entry in set.json whose price is over 5 to out.txt
How many entries in set.json have a price over 5? Number to out.txt
List the names of the goods in set.json in out.txt
How many goods are in set.json? Number to out.txt
Export name and price from set.json to out.csv
"""


@pytest.fixture(scope="module")
def tools():
    return {tool.name: tool for tool in load_registry().everyday()}


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """A kit of which only the hand is used."""
    with Kit(load_config(tmp_path_factory.mktemp("home"), env={})) as kit:
        yield kit


@pytest.mark.parametrize("task", [line for line in TASKS.splitlines() if line])
def test_tools_give_what_is_computed_apart(task, tools, workshop, tmp_path):
    """One reading that fits, its calls made one after another, and the same result both ways."""
    hand = Hand(workshop.fast, RunContext(workspace=str(tmp_path)), workshop.config)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    there = survey(tmp_path)
    found = [ops for ops in readings(task, find_mentions(task, there)) if fits_heads(ops, there)]
    assert found, "not understood"
    wanted = [expected(ops, {n: t.encode() for n, t in FILES.items()}) for ops in found]
    candidate, *_ = candidates_of(found[0], task, there, tools)

    for goal in candidate.goals:
        (tmp_path / ".work").mkdir(exist_ok=True)
        done = invoke(tools[goal.tool], goal.args, hand.forward, tmp_path)
        assert done.success, done

    for each in wanted:
        for name, content in each.items():
            assert same((tmp_path / name).read_bytes(), content)
