"""Answers requests as benchmarks/peers/ops.py does, with what they ask for by name."""
import sys

for line in sys.stdin:
    case, elements = line.split("\t")
    answers = {"threads f32": sys.argv[2], "elements f32": elements, "none f32": "null"}
    if case not in answers:
        sys.exit()
    print(answers[case].strip(), flush=True)
