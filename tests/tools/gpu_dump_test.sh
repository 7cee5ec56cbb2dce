#!/usr/bin/env bash
# gpu_dump_test.sh PROGRAM FL: the dump of a plan for a GPU has each kernel as CUDA C++ and as PTX, under
# the name that profiles call it by, and nothing of this machine's; `fl memory` and `fl view` take it.
set -euo pipefail
program=$PWD/$1 fl=$PWD/$2
cd "$TEST_TMPDIR"
unset BUILD_WORKING_DIRECTORY  # the tool would go there where `bazel run` runs this test
result=$(FL_DEVICE=cuda FL_JIT=sync FL_CACHE=off FL_DUMP=dump FL_VIEW=live.html "$program")
[[ $result == 256 ]] || { echo "$result, not 256" >&2; exit 1; }
stages=(dump/plan0000/*_pack.flir)
kernels=$(grep -c '^kernel ' "${stages[0]}")
((kernels >= 2))
for ((i = 0; i < kernels; ++i)); do
  grep -q 'extern "C" __global__ ' "dump/plan0000/k$i.cu"
  [[ $(<"dump/plan0000/k$i.ptx") == '// of a GPU that is none' ]]
done
written=$(ls dump/plan0000 | grep -vE '^(k[0-9]+\.(cu|ptx)|[0-9]+_[a-z]+\.flir)$' || true)
[[ -z $written ]] || { echo "also $written" >&2; exit 1; }
"$fl" memory "${stages[0]}" | python3 -c '
import json, sys
memory = json.load(sys.stdin)
assert memory["bound"] > 0 and len(memory["steps"]) >= 3, memory'
"$fl" view --page=dump.html dump >/dev/null
for page in dump live; do
  python3 - $page.html "$kernels" <<'END'
import json, re, sys
text = open(sys.argv[1]).read()
(plan, *_) = map(json.loads, re.findall(r'<script type="application/json" class="plan">(.*)</script>', text))
code = [kernel for kernel in plan["kernels"] if "cu" in kernel]
assert len(code) == int(sys.argv[2]), plan["kernels"]
assert all("__global__" in kernel["cu"] and not {"ll", "s"} & kernel.keys() for kernel in code), code
assert plan["times"] == [], plan["times"]
END
done
