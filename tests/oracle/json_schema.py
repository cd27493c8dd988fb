# SPDX-License-Identifier: MIT
"""Checks documents of `berth VERB --json` against a JSON Schema (draft 2020-12), with python3-jsonschema.

json_schema.py SCHEMA FOLDER    FOLDER/KIND has a document on each line; SCHEMA describes it as $defs/KIND. Each kind needs a
                                document, and a document without one of its required members, or with one more, must be wrong.

Exit status: 0; 1: a document or the schema is wrong; 77: the validator is not installed.
"""

import json
import pathlib
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    sys.exit(77)

schema = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
Draft202012Validator.check_schema(schema)
folder = pathlib.Path(sys.argv[2])
wrong = 0


def complain(kind, text):
    global wrong
    wrong += 1
    print(f"{kind}: {text}")


for kind in schema["x-kinds"]:
    validator = Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": schema["$defs"]})
    path = folder / kind
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if not lines:
        complain(kind, "there is no document")
    for line in lines:
        document = json.loads(line)
        for error in validator.iter_errors(document):
            complain(kind, f"{error.json_path}: {error.message[:300]}")
        for name in schema["$defs"][kind]["required"]:
            if validator.is_valid({key: document[key] for key in document if key != name}):
                complain(kind, f"{name} may be missing")
        if schema["$defs"][kind].get("additionalProperties") is False and validator.is_valid({**document, "x-more": 1}):
            complain(kind, "it may have more members")
for path in folder.iterdir():
    if path.name not in schema["x-kinds"]:
        complain(path.name, "the schema does not describe it")
sys.exit(1 if wrong else 0)
