# SPDX-License-Identifier: MIT
"""Parses files of `berth metrics --format openmetrics` with the parser of python3-prometheus-client, the reference of the format.

openmetrics.py FILE...       prints the number of samples of each file

Exit status: 0; 1: a file is malformed; 77: the parser is not installed.
"""

import sys

try:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
except ImportError:
    sys.exit(77)


def samples(path):
    """Returns the number of samples. Each line that is no comment is one, and each family of seconds has that unit."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    families = list(text_string_to_metric_families(text))
    parsed = sum(len(family.samples) for family in families)
    assert parsed == sum(not line.startswith("#") for line in text.splitlines()), "a sample is lost"
    for family in families:
        assert family.name.startswith("berth_") and family.documentation, family.name
        assert family.type in ("gauge", "counter", "histogram"), family.name
        assert family.name.endswith("_seconds") == (family.unit == "seconds"), family.name
    return parsed


for name in sys.argv[1:]:
    try:
        print(samples(name))
    except (AssertionError, ValueError) as error:
        sys.exit(f"{name}: {error!r}")
