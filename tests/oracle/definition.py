# SPDX-License-Identifier: MIT
"""Due times by their definition (berth-schedule(7)): sets of local times, and a look at every minute of real time.

Slow on purpose and written from the manual alone, so that it can judge base/schedule. Times are seconds since
1970 UTC; local times are the same numbers of a clock in the zone.
"""

import calendar
from datetime import date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

EPOCH_DAY = date(1970, 1, 1)
WORDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
WEEKDAYS = "sun mon tue wed thu fri sat".split()


def read_value(text, names, first):
    return names.index(text.lower()) + first if text.lower() in names else int(text)


def read_list(text, low, high, names=(), first=0, special=None):
    """The values of a field as a set. `special` takes the items that only this field has."""
    values = set()
    for item in text.split(","):
        if special and special(item):
            continue
        span, _, step = item.partition("/")
        if span == "*":
            begin, end = low, high
        elif "-" in span:
            begin_text, end_text = span.split("-")
            begin, end = read_value(begin_text, names, first), read_value(end_text, names, first)
            if names is WEEKDAYS and end_text.lower() == "sun":
                end = 7
        else:
            begin = end = read_value(span, names, first)
        values.update(range(begin, end + 1, int(step or 1)))
    return values


class Entry:
    """Five fields, or a word such as @daily."""

    def __init__(self, text):
        minute, hour, day, month, weekday = WORDS.get(text.strip().lower(), text).split()
        self.minutes = read_list(minute, 0, 59)
        self.hours = read_list(hour, 0, 23)
        self.months = read_list(month, 1, 12, MONTHS, 1)
        self.needs_both = weekday.startswith("+")
        self.before_last = set()  # days before the last day of the month
        self.last_weekdays = set()
        self.nth_weekdays = set()  # (weekday, k)
        self.days = read_list(day, 1, 31, special=self.read_last_day)
        weekdays = read_list(weekday.lstrip("+"), 0, 7, WEEKDAYS, 0, self.read_weekday)
        if weekday.lstrip("+").startswith("*"):
            weekdays.discard(7)  # "*" is the seven days of a week, and a step counts from Sunday
        self.weekdays = {value % 7 for value in weekdays}
        self.restricts_day = self.days != set(range(1, 32))
        self.restricts_weekday = self.weekdays != set(range(7))
        self.is_every_hour = len(self.hours) == 24
        self.matches_date = lru_cache(maxsize=None)(self._matches_date)

    def read_last_day(self, item):
        if item.upper() == "L":
            self.before_last.add(0)
        elif item.upper().startswith("L-"):
            self.before_last.add(int(item[2:]))
        else:
            return False
        return True

    def read_weekday(self, item):
        if "#" in item:
            name, number = item.split("#")
            self.nth_weekdays.add((read_value(name, WEEKDAYS, 0) % 7, int(number)))
        elif item.upper().endswith("L"):
            self.last_weekdays.add(read_value(item[:-1], WEEKDAYS, 0) % 7)
        else:
            return False
        return True

    def _matches_date(self, day):
        """day: days since 1970."""
        at = EPOCH_DAY + timedelta(days=day)
        length = calendar.monthrange(at.year, at.month)[1]
        weekday = at.isoweekday() % 7
        if at.month not in self.months:
            return False
        of_month = at.day in self.days or length - at.day in self.before_last
        of_week = (
            weekday in self.weekdays
            or (weekday, (at.day - 1) // 7 + 1) in self.nth_weekdays
            or (weekday in self.last_weekdays and at.day + 7 > length)
        )
        if not self.restricts_day and not self.restricts_weekday:
            return True
        if not self.restricts_weekday:
            return of_month
        if not self.restricts_day:
            return of_week
        return of_month and of_week if self.needs_both else of_month or of_week

    def matches(self, local):
        return (
            local // 60 % 60 in self.minutes
            and local // 3600 % 24 in self.hours
            and self.matches_date(local // 86400)
        )

    def local_times(self, first_day, last_day):
        """M of the definition: all matching local times of these days."""
        return {
            day * 86400 + hour * 3600 + minute * 60
            for day in range(first_day, last_day + 1)
            if self.matches_date(day)
            for hour in self.hours
            for minute in self.minutes
        }


class Except:
    """One text of `except`: five fields, a date, or two dates with a slash."""

    def __init__(self, text):
        self.entry = None
        if text[:4].isdigit() and text[4] == "-":
            begin, _, end = text.partition("/")
            self.days = [(date.fromisoformat(d) - EPOCH_DAY).days for d in (begin, end or begin)]
        else:
            self.entry = Entry(text)

    def matches(self, local):
        if self.entry:
            return self.entry.matches(local)
        return self.days[0] <= local // 86400 <= self.days[1]


class Clock:
    """The clock of a zone, looked at minute by minute from `begin` to `end`."""

    def __init__(self, name, begin, end):
        self.zone = ZoneInfo(name)
        self.instants = {}  # local time, on whole minutes: the instants that have it, first one first
        self.transitions = []  # (instant, offset before, offset after)
        begin -= begin % 60
        offset = self.offset(begin)
        for minute in range(begin, end, 60):
            after = self.offset(minute + 60)
            if after == offset:
                self._see(minute + -(minute + offset) % 60, offset)
                continue
            for second in range(minute, minute + 60):
                here = self.offset(second)
                if (second + here) % 60 == 0:
                    self._see(second, here)
                before = self.offset(second - 1)
                if here != before and second > minute:
                    self.transitions.append((second, before, here))
            if self.offset(minute + 59) != after:
                self.transitions.append((minute + 60, self.offset(minute + 59), after))
            offset = after

    def offset(self, instant):
        return int(datetime.fromtimestamp(instant, self.zone).utcoffset().total_seconds())

    def _see(self, instant, offset):
        self.instants.setdefault(instant + offset, []).append(instant)

    def _end_of_gap(self, local):
        for instant, before, after in self.transitions:
            if instant + before <= local < instant + after:
                return instant
        return None

    def due_of_entry(self, entry, begin, end):
        due = set()
        # Two days more at both ends: offsets and gaps are at most a day each.
        for local in entry.local_times(begin // 86400 - 2, end // 86400 + 2):
            instants = self.instants.get(local)
            if instants:
                due.update(instants if entry.is_every_hour else instants[:1])
            elif not entry.is_every_hour:
                end = self._end_of_gap(local)
                if end is not None:
                    due.add(end)
        return due

    def due(self, entries, exceptions, begin, end):
        """The due times later than `begin` and not later than `end`, sorted."""
        due = set().union(*(self.due_of_entry(entry, begin, end) for entry in entries))
        return sorted(
            instant
            for instant in due
            if begin < instant <= end
            and not any(e.matches(instant + self.offset(instant)) for e in exceptions)
        )
