#!/usr/bin/python3
"""rooms_test.py README DEPS: the table of rooms is what their targets depend on, which DEPS, the answer
of a query in XML, tells; the picture has every room, above those that it uses but the interface that
backends implement.
"""

import re
import sys
import xml.etree.ElementTree as xml

BACKENDS = {"definitions", "eager", "lazy"}


def room_of(label):
    return re.match(r"//fl/(\w+)", label)[1]


def dependencies(path):
    """The rooms that each room uses."""
    with open(path) as file:
        file.readline()  # says version 1.1, which the parser has not
        rules = xml.fromstring(file.read()).findall("rule")
    labels = {rule.get("name") for rule in rules}
    rooms = {room_of(label): set() for label in labels}
    for rule in rules:
        used = {each.get("name") for each in rule.findall("rule-input")} & labels
        rooms[room_of(rule.get("name"))].update(room_of(label) for label in used)
    return {room: used - {room} for room, used in rooms.items()}


def table(text):
    rows = {}
    for names, used in re.findall(r"^\| (`fl/[^|]*) \| ([^|]*) \|", text, re.MULTILINE):
        for name in re.findall(r"`fl/(\w+)`", names):
            rows[name] = set(re.findall(r"\w+", used.replace("no room", "")))
    return rows


def main():
    with open(sys.argv[1]) as file:
        section = file.read().split("\n## Rooms\n")[1]
    wanted, rows = dependencies(sys.argv[2]), table(section)
    assert len(wanted) > 20, wanted
    for room in sorted(wanted.keys() | rows.keys()):
        actual = rows.get(room)
        assert actual == wanted.get(room), f"fl/{room}: the table has {actual}, not {wanted.get(room)}"

    picture = re.search(r"^```text\n(.*?)^```", section, re.MULTILINE | re.DOTALL)[1].splitlines()
    line_of = {}
    for number, line in enumerate(picture):
        for name in re.findall(r"\bfl/(\w+)", line):
            line_of[name] = number
    assert line_of.keys() == wanted.keys(), line_of.keys() ^ wanted.keys()
    for room, used in wanted.items():
        for below in used - ({"tensor"} if room in BACKENDS else set()):
            assert line_of[room] <= line_of[below], f"the picture has fl/{below} above fl/{room}"


if __name__ == "__main__":
    main()
