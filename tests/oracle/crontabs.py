# SPDX-License-Identifier: MIT
"""Compares due times of imported crontabs with cron's: random lines, and those of Debian packages (tests/data/crontabs).

crontabs.py [LINES [SEED]]      200 random lines by default, of each the times of a year in UTC. Between them stand
                                variables (MAILTO, CRON_TZ, SHELL ...) and comments, and the commands have
                                "%" and flags.

What cron means is written down here from cronie's entry.c and cron.c: a field is a set of bits, and day and weekday
must both match if one of these two fields begins with "*", else either.
"""

import os
import pwd
import random
import re
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta, timezone

from tool import Judge, Question, ask

BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
DAYS = 366
NAMES = {3: "jan feb mar apr may jun jul aug sep oct nov dec".split(), 4: "sun mon tue wed thu fri sat".split()}
BOUNDS = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)]
WORDS = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *"}


def bits(text, kind):
    """The values of a field as cronie reads it."""
    low, high = BOUNDS[kind]
    values = set()

    def number(word):
        names = NAMES.get(kind, [])
        return names.index(word.lower()) + (kind == 3) if word.lower() in names else int(word)

    for item in text.split(","):
        span, _, step = item.partition("/")
        if span == "*":
            first, last = low, high
        elif "-" in span:
            first, last = (number(word) for word in span.split("-"))
        else:
            first = number(span)
            last = first if not step else 6 if kind == 4 else high  # "a/n": crons that take it count to Saturday
        if first > last:  # "22-2", "fri-sun": over the end
            last += 7 if kind == 4 else high - low + 1
        span_size = 7 if kind == 4 and last > high else high - low + 1
        values.update((value - low) % span_size + low for value in range(first, last + 1, int(step or 1)))
    if kind == 4:
        values = {value % 7 for value in values}
    return values


def cron_times(fields):
    minutes, hours, days, months, weekdays = (bits(text, kind) for kind, text in enumerate(fields))
    needs_both = fields[2].startswith("*") or fields[4].startswith("*")
    times = []
    for n in range(DAYS):
        at = BEGIN + timedelta(days=n)
        of_month, of_week = at.day in days, at.isoweekday() % 7 in weekdays
        if at.month in months and (of_month and of_week if needs_both else of_month or of_week):
            midnight = int(at.timestamp())
            times += [midnight + h * 3600 + m * 60 for h in sorted(hours) for m in sorted(minutes)]
    return times


def random_field(random_, kind):
    low, high = BOUNDS[kind]
    names = NAMES.get(kind)

    def value(at):
        if names and random_.random() < 0.3:
            return names[(at - (kind == 3)) % len(names)]
        return f"{at:02d}" if random_.random() < 0.1 else str(at)

    def item():
        first, last = sorted((random_.randint(low, high), random_.randint(low, high)))
        choice = random_.random()
        if choice < 0.4 or first == last:
            return value(first)
        if choice < 0.5:
            return f"{first}/{random_.randint(1, 20)}"  # of some crons alone: rewritten
        if choice < 0.6 and kind < 3:
            return f"{last}-{first}"  # backwards
        step = f"/{random_.randint(1, high)}" if random_.random() < 0.3 else ""
        return (f"{first}-{last}" if last == 7 else f"{value(first)}-{value(last)}") + step

    choice = random_.random()
    if choice < 0.35:
        return "*"
    if choice < 0.5:
        return f"*/{random_.randint(1, high + 20)}"
    items = [item() for _ in range(random_.choice([1, 1, 2, 3]))]
    if random_.random() < 0.1:
        items.insert(random_.randint(0, len(items)), "*")
    return ",".join(items)


NOTES = ["MAILTO=ops@example.org", "MAILTO=\"\"", "CRON_TZ=Europe/Berlin", "CRON_TZ=UTC", "SHELL=/bin/bash", "GREETING='good day'",
         "PATH=/usr/bin:/bin", "# a comment", "", "RANDOM_DELAY=5", "LOGNAME=root", "HOME=/tmp"]
COMMANDS = ["run", "cat%one%two", "date +\\%F", "printf '\\%s' x | sort; true", "a && b || c", "-q run", "-n run", "echo \"${HOME}\" 'it''s'",
            "/usr/bin/x -y >/dev/null 2>&1", "test -x /usr/sbin/anacron || ( cd / && run-parts /etc/cron.daily )"]
BAD = ["nonsense", "* * *", "60 * * * * late", "@never x", "* * * * *", "0 0 31 2 * never", "1-x * * * * a"]


def make_crontab(random_, n):
    """Returns the lines, {line number of a job: its fields}, and the numbers of the bad lines."""
    lines, jobs, bad = [], {}, set()
    while len(jobs) < n:
        if random_.random() < 0.2:
            lines.append(random_.choice(NOTES))
        if random_.random() < 0.05:
            lines.append(random_.choice(BAD))
            bad.add(len(lines))
        fields = [random_field(random_, kind) for kind in range(5)]
        if random_.random() < 0.05:  # a random minute: the first, and a splay
            low, high = sorted(random_.sample(range(60), 2))
            lines.append(" ".join([f"{low}~{high}"] + fields[1:] + [random_.choice(COMMANDS)]))
            fields[0] = str(low)
        else:
            lines.append(" ".join(fields + [random_.choice(COMMANDS)]))
        jobs[len(lines)] = fields
    return lines, jobs, bad


def check_config(judge, config):
    """Checks that berthd accepts the printed config."""
    berthd = os.path.join(os.environ.get("BERTH_BUILD", "build"), "berthd")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "berth.conf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config)
        done = subprocess.run([berthd, "--check", "-c", path], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        judge.n_wrong += 1
        print(f"wrong: berthd --check refuses the printed config: {done.stderr[:2000]}")


def run_import(*words):
    berth = os.path.join(os.environ.get("BERTH_BUILD", "build"), "berth")
    done = subprocess.run([berth, "import-crontab", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def schedules(config):
    """{line of the crontab: its schedule, "" if it has none} and the lines that were not converted."""
    found, left_out, line = {}, set(), None
    for text in config.splitlines():
        number = re.match(r"# [^:]*:(\d+): (.*)", text)
        if number and number[2].startswith("not converted: "):
            left_out.add(int(number[1]))
        elif number:
            line = int(number[1])
        if text.startswith('job "'):
            found[line] = ""
        schedule = re.match(r' {4}schedule = \{"(.*)"\}', text)
        if schedule:
            found[line] = schedule[1]
    return found, left_out


def compare(judge, rows):
    """rows: (fields of the crontab or None, schedule)."""
    begin, end = int(BEGIN.timestamp()) - 1, int((BEGIN + timedelta(days=DAYS)).timestamp()) - 1
    questions = [Question("UTC", begin, end, [schedule]) for _, schedule in rows]
    for (fields, _), question, answer in zip(rows, questions, ask(questions)):
        judge.compare(question, answer, cron_times(fields))


def compare_random(judge, n, seed):
    random_ = random.Random(seed)
    lines, jobs, bad = make_crontab(random_, n)
    user = pwd.getpwuid(os.getuid()).pw_name
    with tempfile.NamedTemporaryFile("w", suffix=".cron") as file:
        file.write("".join(f"{line}\n" for line in lines))
        file.flush()
        _, config = run_import("--user", user, file.name)
    check_config(judge, config)
    found, left_out = schedules(config)
    rows = []
    for number in bad - left_out:
        judge.n_wrong += 1
        print(f"wrong: carried: {lines[number - 1]}")
    for number, fields in jobs.items():
        if number in left_out:
            # berth refuses only lines that are never due.
            if any(cron_times(fields)):
                judge.n_wrong += 1
                print(f"wrong: left out: {lines[number - 1]}")
        elif not found.get(number):
            judge.n_wrong += 1
            print(f"wrong: neither a job nor a comment: {lines[number - 1]}")
        else:
            rows.append((fields, found[number]))
    compare(judge, rows)
    return len(rows)


def compare_file(judge, folder, name):
    """Returns the rows of a package's crontab. Files of users (NAME.user) have no user in their lines."""
    rows, path = [], os.path.join(folder, name)
    user = pwd.getpwuid(os.getuid()).pw_name
    status, config = run_import(*(["--user", user] if name.endswith(".user") else ["--system"]), path)
    found, left_out = schedules(config)
    if status != 0 or left_out:
        judge.n_wrong += 1
        print(f"wrong: {name} is not converted whole")
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split()
            if not words or words[0].startswith("#") or re.match(r"[A-Z_a-z]+ *=", line):
                continue
            schedule = found.get(number)
            if schedule is None or (schedule == "") != (words[0] == "@reboot"):
                judge.n_wrong += 1
                print(f"wrong: {name}:{number} is no job like cron's: {line.strip()}")
            elif schedule:
                rows.append((WORDS[words[0]].split() if words[0] in WORDS else words[:5], schedule))
    return rows


def compare_debian(judge, folder="tests/data/crontabs"):
    names = [name for name in sorted(os.listdir(folder)) if not name.endswith("anacrontab")]
    rows = [row for name in names for row in compare_file(judge, folder, name)]
    compare(judge, rows)
    return len({name.split(".")[0] for name in names}), len(rows)


def main():
    judge = Judge()
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    compared = compare_random(judge, n, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    packages, lines = compare_debian(judge)
    print(f"{compared} of {n} random lines, {lines} lines of {packages} Debian packages: {judge.n_due} due times, {judge.n_wrong} wrong")
    return 1 if judge.n_wrong or not compared or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
