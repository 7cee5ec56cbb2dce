#!/usr/bin/env bash
# viewer_test.sh DOCUMENT TRAIN STEP FL: the commands of docs/viewer.md run.
set -euo pipefail
document=$PWD/$1 train=$PWD/$2 step=$PWD/$3 fl=$PWD/$4
cd "$TEST_TMPDIR"
commands=$(sed -n '/^```sh$/,/^```$/p' "$document" | sed '/^```/d' |
  sed "s|/tmp/|$TEST_TMPDIR/|g; s|bazel run //apps/mnist:train --|$train|
    s|bazel run //benchmarks:mnist_step --|$step|; s|bazel run //tools:fl --|$fl|")
while read -r command; do
  echo "+ $command"
  bash -c "$command"
done <<<"$commands"
grep -q 'class="plan"' plans.html
grep -q 'class="plan"' live.html
grep -q 'class="plan"' step.html
grep -q 'subgraph cluster_0' plan.dot
