# SPDX-License-Identifier: MIT
"""Compares due times in UTC with python3-croniter, and with cronie's test of day and weekday (entry.c, cron.c).

plain_days.py [EXPRESSIONS [SEED]]       1000 expressions by default; the next 200 times of each

Left out of the random expressions, because croniter and berth differ there on purpose:
- "*" with a step in day of month or weekday beside a restriction of the other field: crons differ, so berth
  refuses it (berth-schedule(7)).
- "?", "R", "H", a sixth field, "a/n" and backwards ranges: croniter takes them, berth refuses them.
- "7" inside of a weekday range that does not end with it, and "sun" as the end of a range: croniter 1.3.5 reads
  them as 0.
- "+", "L-n", "#" and "friL" beside other items: croniter has no "+" and no "L-n", and takes "#" and "L" only
  without other kinds of items. definition.py judges them, below.
- Dates that exist in leap years alone, beside a weekday: croniter searches 50 years, which is enough, but slowly.
Where the two differ on an expression, each time of which they differ is judged by cronie's test. If berth is right
in all of them, croniter is wrong: 1.3.5 leaves out 1 March after some steps of days, and weekdays beside a day that
none of the months has ("0 0 31 2 4").
"""

import random
import sys
from datetime import datetime, timezone

from croniter import CroniterBadDateError, croniter

from definition import MONTHS, WEEKDAYS, Clock, Entry
from tool import Judge, Question, ask

N_TIMES = 200
BEGIN = int(datetime(2024, 1, 1, tzinfo=timezone.utc).timestamp())
YEARS = 40 * 366 * 86400


def random_item(random_, low, high, names, first):
    def text(value):
        if names and random_.random() < 0.3:
            name = names[value - first] if value - first < len(names) else None
            return random_.choice([name, name.upper(), name.capitalize()]) if name else str(value)
        return f"{value:02d}" if not names and value < 10 and random_.random() < 0.1 else str(value)

    kind = random_.random()
    if kind < 0.5:
        return text(random_.randint(low, high))
    begin = random_.randint(low, high - 1)
    end = random_.randint(begin + 1, high)
    span = f"{text(begin)}-{text(end)}"
    return span if kind < 0.8 else f"{span}/{random_.randint(1, max(1, (end - begin)))}"


def random_field(random_, low, high, any_=0.3, names=(), first=0, with_step=True):
    kind = random_.random()
    if kind < any_:
        return "*"
    if with_step and kind < any_ + 0.15:
        return f"*/{random_.randint(1, high - low + 1)}"
    return ",".join(random_item(random_, low, high, names, first) for _ in range(random_.choice([1, 1, 1, 2, 3])))


def random_expression(random_):
    minute = random_field(random_, 0, 59)
    hour = random_field(random_, 0, 23)
    month = random_field(random_, 1, 12, 0.6, MONTHS, 1)
    which = random_.choice(["none", "day", "weekday", "both", "last", "nth"])
    day = weekday = "*"
    if which in ("day", "both"):
        day = random_field(random_, 1, 31, 0, with_step=which == "day")
    if which in ("weekday", "both"):
        weekday = random_field(random_, 0, 6, 0, WEEKDAYS, 0, with_step=which == "weekday")
    if which == "last":
        day = "L"
    if which == "nth":
        weekday = ",".join(f"{random_.choice(WEEKDAYS)}#{random_.randint(1, 5)}" for _ in range(random_.choice([1, 2])))
    return " ".join([minute, hour, day, month, weekday])


def random_extension(random_):
    """Returns an expression that croniter does not know; definition.py answers it."""
    day = random_.choice(["*", "L", "L-3", "1,L", "L-1,L-30,10-12", str(random_.randint(1, 31))])
    weekday = random_.choice(
        ["*", "+mon", "+1-5", "friL", "sun#1,wed", "+tue#2,thuL", "5-7", "fri-sun", "0,7", "+*", "1-7/3", "+0"]
    )
    minute, hour = random_field(random_, 0, 59, 0), random_field(random_, 0, 23, 0)
    return f"{minute} {hour} {day} {random_field(random_, 1, 12, 0.6, MONTHS, 1)} {weekday}"


def next_times(expression):
    """The next 200 times, or those of the 50 years in which croniter finds any."""
    found = []
    times = croniter(expression, datetime.fromtimestamp(BEGIN, timezone.utc))
    while len(found) < N_TIMES:
        try:
            instant = int(times.get_next(float))
        except CroniterBadDateError:  # none in 50 years
            break
        if instant > BEGIN + YEARS:
            break
        found.append(instant)
    return found


def exists(expression):
    """Whether any date of 40 years matches (29 February is the same weekday each 28): berth refuses what never comes."""
    entry = Entry(expression)
    return any(entry.matches_date(day) for day in range(BEGIN // 86400, BEGIN // 86400 + 40 * 366))


def cron_matches_date(expression, entry, instant):
    """cronie: day and weekday must both match if one of the fields begins with "*", else either."""
    _, _, day, _, weekday = expression.split()
    at = datetime.fromtimestamp(instant, timezone.utc)
    of_month, of_week = at.day in entry.days, at.isoweekday() % 7 in entry.weekdays
    if day.startswith("*") or weekday.startswith("*"):
        return of_month and of_week
    return of_month or of_week


def is_croniters_fault(expression, answer, expected):
    """Whether cronie's test agrees with berth on each time that one of the two answers alone has."""
    if isinstance(answer, str) or sorted(set(answer)) != answer:
        return False
    entry, words = Entry(expression), expression.split()
    if "L" in words[2] or "#" in words[4]:
        return False

    def is_due(instant):
        at = datetime.fromtimestamp(instant, timezone.utc)
        is_time = at.minute in entry.minutes and at.hour in entry.hours and at.month in entry.months
        return is_time and instant % 60 == 0 and cron_matches_date(expression, entry, instant)

    alone = set(answer) - set(expected)
    return all(is_due(i) for i in alone) and not any(is_due(i) for i in set(expected) - set(answer))


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    random_ = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    judge, n_cron, n_croniter = Judge(), 0, 0
    questions, expected = [], []
    while len(questions) < n:
        expression = random_expression(random_)
        if not exists(expression):
            continue
        due = next_times(expression)
        questions.append(Question("UTC", BEGIN, due[-1] if len(due) == N_TIMES else BEGIN + YEARS, [expression]))
        expected.append(due)
        if "L" not in expression.split()[2] and "#" not in expression:
            entry = Entry(expression)
            n_cron += 1
            if not all(cron_matches_date(expression, entry, instant) for instant in due):
                judge.n_wrong += 1
                print(f"wrong: croniter and cronie differ on {expression}: leave it out, and say why")
    clock = Clock("UTC", BEGIN, BEGIN + 400 * 86400)
    for _ in range(n // 10):
        expression = random_extension(random_)
        questions.append(Question("UTC", BEGIN, BEGIN + 390 * 86400, [expression]))
        expected.append(clock.due([Entry(expression)], [], BEGIN, BEGIN + 390 * 86400) if exists(expression) else None)
    for question, answer, due in zip(questions, ask(questions), expected):
        if due is None:
            judge.n_wrong += not isinstance(answer, str)
        elif answer != due and is_croniters_fault(question.entries[0], answer, due):
            n_croniter += 1
        else:
            judge.compare(question, answer, due)
    print(f"{n} expressions (seed-made; cronie's test on {n_cron}), {judge.n_answers} answers, {judge.n_due} due times, {judge.n_wrong} wrong, croniter in {n_croniter}")
    return 1 if judge.n_wrong or not judge.n_answers else 0


if __name__ == "__main__":
    sys.exit(main())
