# SPDX-License-Identifier: MIT
"""The tool whose due times are judged: build/tests/tools/due-times reads questions and answers each with one line."""

import os
import subprocess
import threading


class Question:
    def __init__(self, zone, begin, end, entries, exceptions=()):
        self.zone, self.begin, self.end = zone, begin, end
        self.entries, self.exceptions = list(entries), list(exceptions)

    def __str__(self):
        words = [self.zone, str(self.begin), str(self.end), ";".join(self.entries)]
        return "\t".join(words + ([";".join(self.exceptions)] if self.exceptions else []))


def ask(questions):
    """Yields the answer to each question: a list of due times, or the text of an error."""
    path = os.path.join(os.environ.get("BERTH_BUILD", "build"), "tests/tools/due-times")
    with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as tool:

        def write():
            with tool.stdin:
                for question in questions:
                    tool.stdin.write(f"{question}\n")

        writer = threading.Thread(target=write)
        writer.start()
        n = 0
        for line in tool.stdout:
            n += 1
            yield line.strip() if line.startswith("error: ") else [int(word) for word in line.split()]
        writer.join()
        if tool.wait() != 0 or n != len(questions):
            raise SystemExit(f"{path}: {n} answers to {len(questions)} questions, exit status {tool.returncode}")


class Judge:
    """Counts answers and shows the first that are wrong."""

    def __init__(self):
        self.n_answers = self.n_due = self.n_wrong = 0

    def compare(self, question, answer, expected):
        self.n_answers += 1
        self.n_due += len(expected)
        if answer == expected:
            return
        self.n_wrong += 1
        if self.n_wrong > 20:
            return
        print(f"wrong: {question}")
        if isinstance(answer, str):
            print(f"    {answer}")
            return
        print(f"    not due: {sorted(set(answer) - set(expected))[:10]}")
        print(f"    left out: {sorted(set(expected) - set(answer))[:10]}")
        if sorted(set(answer)) != answer:
            print("    not in order, or twice")
