#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the benchmarks of this checkout with those of another commit, and names what is more than 5 % slower, or
# takes more than 5 % more memory or allocations. Exits with 1 if there is any.
# Usage: bench-check.sh COMMIT. BENCH is the pattern of the benchmarks, ROUNDS how often each runs.
#
# Both run by turns on the same machine. A round has the least of five short runs: other load only ever adds.
# benchstat decides what is certain (p < 0.01).
# What is slower then is measured once more, and named if it is slower again: another load may have hit one side.
set -euo pipefail
cd "$(dirname "$0")/.."

BENCHSTAT=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
# What an ordinary reconcile passes: watch, store, queue, guest, host functions, writes, history.
DEFAULT='Wire_Event|Pack|Transcode|Store_Get|Writer_Apply|Filter|BenchmarkMap$|MergeReasons|Scheduler_AddPop$|AddDuplicate|Runner_Single'
DEFAULT+='|BenchmarkApply|ReadHead|Reconcile_Empty4KiB|Rust_Run|Map_TwoObjects|BenchmarkGet|Declare|Policy_Check|Recall|Remember'
DEFAULT+='|BenchmarkRun$|NoOpRun|Record|BenchmarkText'
BENCH=${BENCH:-$DEFAULT} ROUNDS=${ROUNDS:-10} TIME=${TIME:-10ms}
[ "$ROUNDS" -ge 5 ] || { echo "bench-check: ROUNDS=$ROUNDS: 5 or more, or nothing is certain" >&2; exit 2; }
base=$(git rev-parse --verify --quiet "${1:?usage: bench-check.sh COMMIT}^{commit}") || { echo "bench-check: there is no commit $1" >&2; exit 2; }

tmp=$(mktemp -d)
trap 'git worktree remove --force "$tmp/base" 2>/dev/null || true; rm -rf "$tmp"' EXIT
git worktree add --quiet --detach "$tmp/base" "$base"
ln -s "$PWD/bin" "$tmp/base/bin" # the same guests

# Packages that have such benchmarks: others need not be built.
packages=$(grep -roE '^func Benchmark\w+' --include='*_test.go' abi host internal runtime | sed 's/^\(.*\)\/[^/]*:func /\1 /' |
	awk -v pattern="${BENCH%%/*}" '$2 ~ pattern { print $1 }' | sort -u)
[ -n "$packages" ] || { echo "bench-check: no benchmark is like $BENCH" >&2; exit 2; }
build() { # TREE NAME: builds tests that both have
	for p in $packages; do
		[ -d "$tmp/base/$p" ] || continue
		(cd "$1" && go test -c -o "$tmp/$2/$p.test" "./$p") || { echo "bench-check: $p of $2 does not build" >&2; exit 2; }
	done
}
build "$PWD" new
build "$tmp/base" old

least() { # of the lines of each benchmark: that with the least time
	awk '/^Benchmark/ { if (!($1 in time)) name[++n] = $1; if (!($1 in time) || $3 < time[$1]) { time[$1] = $3; line[$1] = $0 } next } 1
		END { for (i = 1; i <= n; i++) print line[name[i]] }'
}
run() { # TREE NAME PATTERN: one round of all
	for p in $packages; do
		[ -x "$tmp/$2/$p.test" ] || continue
		(cd "$1/$p" && "$tmp/$2/$p.test" -test.run '^$' -test.bench "$3" -test.benchmem -test.benchtime "$TIME" -test.count 5) |
			least >>"$tmp/$2.txt"
	done
}
measure() { # PATTERN: prints what is slower
	rm -f "$tmp/old.txt" "$tmp/new.txt"
	for _ in $(seq "$ROUNDS"); do
		run "$tmp/base" old "$1"
		run "$PWD" new "$1"
	done
	go run "$BENCHSTAT" -alpha 0.01 "$tmp/old.txt" "$tmp/new.txt" >&2
	go run "$BENCHSTAT" -alpha 0.01 -format csv "$tmp/old.txt" "$tmp/new.txt" 2>/dev/null | awk -F, '
		$3 == "CI" { unit = $2; next }
		unit ~ /^(sec|B|allocs)\/op$/ && $7 ~ /^p=/ && $6 ~ /^\+/ && $6 + 0 > 5 { print $1, unit, $6 }'
}

slow=$(measure "$BENCH")
if [ -n "$slow" ]; then
	echo "bench-check: once more: $(echo "$slow" | awk '{ sub(/\/.*|-[0-9]+$/, "", $1); print $1 }' | sort -u | xargs)" >&2
	again=$(measure "$(echo "$slow" | awk '{ sub(/\/.*|-[0-9]+$/, "", $1); print "^Benchmark" $1 "$" }' | sort -u | paste -sd '|')")
	slow=$(comm -12 <(echo "$slow" | cut -d' ' -f1,2 | sort) <(echo "$again" | cut -d' ' -f1,2 | sort))
fi
if [ -n "$slow" ]; then
	echo "bench-check: more than 5 % worse than $1:"
	echo "$slow"
	exit 1
fi
echo "bench-check: nothing is more than 5 % worse than $1"
