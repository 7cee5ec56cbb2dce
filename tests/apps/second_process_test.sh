#!/usr/bin/env bash
# second_process_test.sh TRAIN FL: what one process has compiled no other compiles again, nor a program that
# lies elsewhere, as in another checkout; and it computes the same.
set -euo pipefail
train=$PWD/$1 fl=$PWD/$2 digits=$PWD/tests/data/digits
cd "$TEST_TMPDIR"
export FL_CACHE_DIR=$PWD/kept FL_JIT=sync
mkdir -p one other/checkout/bin
cp -L "$train" other/checkout/bin/train
cp -RL "$digits" other/checkout/digits

# run FOLDER PROGRAM DIGITS: trains there, and logs each plan with the kernels that it had compiled.
run() { (cd "$1" && FL_LOG=1,log.txt "$2" --epochs=1 --data="$3" --curve= >out.txt); }
sum_of() { grep -o "$1=[0-9]*" "$2" | awk -F= '{ sum += $2 } END { print sum + 0 }'; }
entries() { "$fl" cache | awk -v kind="$1" '$1 == kind { print $2 }'; }

run one "$train" "$digits"
compiled=$(sum_of compiled one/log.txt) kernels=$(entries kernels) plans=$(entries plans)
echo "compiled $compiled kernels; kept $kernels of them and $plans plans"
((compiled > 10 && kernels == compiled && plans > 0))

run other/checkout ./bin/train digits
again=$(sum_of compiled other/checkout/log.txt)
if ((again != 0 || $(entries kernels) != kernels || $(entries plans) != plans)); then
  echo "compiled $again kernels again; now $(entries kernels) of them are kept, and $(entries plans) plans" >&2
  exit 1
fi
cmp one/mnist_model.bin other/checkout/mnist_model.bin
grep -q 'test accuracy' one/out.txt
diff <(grep 'test accuracy' one/out.txt) <(grep 'test accuracy' other/checkout/out.txt)
