# SPDX-License-Identifier: MIT
"""Compares due times around clock changes with their definition.

changes.py              each distinct history of 2024 to 2033 once, its changes of 2026 and 2027, 24 shapes: some seconds
changes.py histories    all its changes: a minute or two
changes.py all          every zone of the machine, and 1970 to 2024 of zones with odd histories: half an hour
"""

import multiprocessing
import sys
from datetime import datetime, timezone
from zoneinfo import ZoneInfo, available_timezones

from definition import Clock, Entry, Except
from tool import Judge, Question, ask

HOUR, DAY = 3600, 86400

# (hours around the change, entries, exceptions). DATE is the local date of the change.
SHAPES = [
    (4, ["* * * * *"], []),
    (30, ["0 * * * *"], []),
    (30, ["*/7 * * * *"], []),
    (30, ["@hourly"], ["* 2 * * *"]),
    (30, ["0 0 * * *"], []),
    (30, ["30 2 * * *"], []),
    (30, ["15 2 * * *"], []),
    (30, ["*/15 2 * * *"], []),
    (30, ["0 */2 * * *"], []),
    (30, ["0 1-4 * * *"], []),
    (30, ["59 23 * * *"], []),
    (30, ["0 0-22 * * *"], []),
    (30, ["*/20 0-3,22,23 * * *"], []),
    (4 * 24, ["0 0 * * sun"], []),
    (4 * 24, ["30 2 * * fri-sun"], []),
    (4 * 24, ["30 0,2,3 * mar,apr,sep-nov sunL,sun#1"], []),
    (4 * 24, ["0 2 1-7 * +sun"], []),
    (4 * 24, ["0 1-3 L,L-1,1,15 * sat"], []),
    (30, ["30 2 * * *", "0 3 * * *"], []),
    (30, ["*/30 * * * *", "15,30 2 * * *"], []),
    (30, ["5 0-3 * * *", "35 * * * *"], ["* 1 * * sun"]),
    (30, ["*/10 1-3 * * *"], ["0,30 * * * *"]),
    (30, ["30 0-4 * * *"], ["DATE"]),
    (30, ["0 */3 * * *", "30 2 * * *"], ["DATE/DATE", "0 0 * * *"]),
]
# Changes at midnight, of half an hour, of a day, of two hours, twice in a month, of odd seconds.
ODD_ZONES = """
    Pacific/Apia Pacific/Kwajalein Pacific/Enderbury Pacific/Kiritimati Pacific/Fakaofo Pacific/Tongatapu Pacific/Fiji
    Pacific/Norfolk Pacific/Easter Pacific/Nauru Pacific/Guam Africa/Monrovia Africa/Casablanca Africa/El_Aaiun Africa/Cairo
    Africa/Tripoli Africa/Khartoum Africa/Juba Africa/Windhoek Africa/Sao_Tome Africa/Bissau Antarctica/Troll Antarctica/Casey
    Antarctica/Vostok Australia/Lord_Howe Asia/Gaza Asia/Hebron Asia/Tehran Asia/Kathmandu Asia/Pyongyang Asia/Amman
    Asia/Damascus Asia/Beirut Asia/Kolkata Asia/Anadyr Asia/Magadan Asia/Dili America/Havana America/Santiago America/Caracas
    America/Sao_Paulo America/Asuncion America/Nuuk America/Scoresbysund America/St_Johns America/Metlakatla
    Europe/Dublin Europe/Istanbul Europe/Moscow Europe/Volgograd Europe/Berlin Europe/Chisinau""".split()


def seconds(year):
    return int(datetime(year, 1, 1, tzinfo=timezone.utc).timestamp())


def find_changes(name, begin, end, step):
    """Instants at which the offset changes, found by looking at it every `step` seconds."""
    zone = ZoneInfo(name)

    def offset(instant):
        return datetime.fromtimestamp(instant, zone).utcoffset()

    changes = []
    before = offset(begin)
    for instant in range(begin + step, end, step):
        after = offset(instant)
        if after == before:
            continue
        low, high = instant - step, instant
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if offset(middle) == before else (low, middle)
        changes.append((high, before, after))
        before = after
    return changes


def history(name):
    """Returns a zone and its changes from 2024 to 2033: one zone of each history is enough.
    No zone changes back within four days."""
    changes = find_changes(name, seconds(2024), seconds(2034), 4 * DAY)
    return name, tuple(changes)


def judge_zone(work):
    """work: zone, changes. Returns questions and the definition's answers."""
    name, changes = work
    zone, found = ZoneInfo(name), []
    for change in changes:
        # Three days more: a local time before the window may be the first of two.
        clock = Clock(name, change - 7 * DAY, change + 7 * DAY)
        day = datetime.fromtimestamp(change, zone).date().isoformat()
        for hours, entries, exceptions in SHAPES:
            exceptions = [text.replace("DATE", day) for text in exceptions]
            question = Question(name, change - hours * HOUR, change + hours * HOUR, entries, exceptions)
            due = clock.due(
                [Entry(text) for text in entries],
                [Except(text) for text in exceptions],
                question.begin,
                question.end,
            )
            found.append((question, due))
    return found


def compare(works, judge, pool):
    for found in pool.imap_unordered(judge_zone, works):
        questions = [question for question, _ in found]
        for (question, expected), answer in zip(found, ask(questions)):
            judge.compare(question, answer, expected)


def main():
    everything, some = sys.argv[1:] == ["all"], not sys.argv[1:]
    judge = Judge()
    with multiprocessing.Pool() as pool:
        histories = {}
        names = sorted(n for n in available_timezones() if n not in ("localtime", "posixrules", "Factory"))
        for name, changes in pool.imap(history, names, 16):
            histories.setdefault(changes, []).append(name)
        histories.setdefault((), ["UTC"])
        works = []
        for changes, same in histories.items():
            instants = [instant for instant, _, _ in changes] or [seconds(2027)]
            if some:
                instants = [i for i in instants if seconds(2026) <= i < seconds(2028)] or instants[-2:]
            works += [(name, instants) for name in (same if everything else same[:1])]
        print(f"{len(names)} zones, {len(histories)} histories, {sum(len(w[1]) for w in works)} changes, {len(SHAPES)} shapes")
        if everything:
            for name in ODD_ZONES:
                changes = find_changes(name, seconds(1970) + 20 * DAY, seconds(2024), HOUR)
                works.append((name, [instant for instant, _, _ in changes]))
        compare(works, judge, pool)
    print(f"{judge.n_answers} answers, {judge.n_due} due times, {judge.n_wrong} wrong")
    return 1 if judge.n_wrong or not judge.n_answers else 0


if __name__ == "__main__":
    sys.exit(main())
