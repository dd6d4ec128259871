#!/usr/bin/env bash
# Compares the example `redis`, in each style, with Redis, by redis-benchmark; prints a table for RESULTS.md to stdout,
# and what it does to stderr. The servers run on CPU 0, redis-benchmark on CPU 1; the style `workers` has both, as it is
# about several.
#
#   examples/compare/redis.sh [ROUNDS [COUNT]]     5 rounds of 100,000 batches each by default; needs Linux and root
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=${1:-5} count=${2:-100000}
. examples/compare/common.sh
need redis-server redis-benchmark:redis-tools
build redis
redis=$example

work=$(mktemp -d)
servers=(redis busy raw actor workers local)
declare -A pids
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
boost=()
nice -n -15 true 2>/dev/null && boost=(nice -n -15) # for all of them, against whatever else runs here

port() { # SERVER
  case $1 in
    redis) echo 16379 ;;
    actor) echo 16380 ;;
    local) echo 16381 ;;
    raw) echo 16382 ;;
    workers) echo 16383 ;;
    busy) echo 16384 ;;
  esac
}

start() { # SERVER COMMAND...
  local cpus=0
  [ "$1" != workers ] || cpus=0,1
  "${boost[@]}" taskset -c "$cpus" "${@:2}" --port "$(port "$1")" >&2 &
  pids[$1]=$!
  for _ in $(seq 100); do
    redis-cli -p "$(port "$1")" ping 2>/dev/null | grep -q PONG && return
    sleep 0.05
  done
  say "$1 does not answer"
  exit 1
}
start redis redis-server --save '' --appendonly no --loglevel warning
for style in raw actor workers local; do start "$style" "$redis" --style "$style"; done

# The CPU time of a process in nanoseconds, all threads together.
cpu() { cat "/proc/$1"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'; }

# One run; appends "rate min p50 p95 p99 max cpu" to the file of that server, times in ms, CPU time in ns per request.
run() { # SERVER COMMAND PIPELINE
  local before after line requests=$((count * $3))
  # It would take CPU 0 from all others.
  [ "$1" != busy ] || start busy "$redis" --style busy
  before=$(cpu "${pids[$1]}")
  line=$("${boost[@]}" taskset -c 1 redis-benchmark -p "$(port "$1")" -t "$2" -n "$requests" -P "$3" --csv | tail -1)
  after=$(cpu "${pids[$1]}")
  [ "$1" != busy ] || { kill "${pids[busy]}" && wait "${pids[busy]}" || true; }
  awk -F'[",]+' -v cpu=$(((after - before) / requests)) '{ print $3, $5, $6, $7, $8, $9, cpu }' <<<"$line" \
    >>"$work/$1.$2.$3"
  say "  $1 $2 -P $3: $(tail -1 "$work/$1.$2.$3")"
}

# The median of a column.
median() { sort -n -k"$2,$2" "$1" | awk -v column="$2" '{ at[NR] = $column } END { print at[int((NR + 1) / 2)] }'; }

say "server, command, pipeline: requests per second, min, p50, p95, p99, max in ms, CPU ns per request"
for _ in $(seq "$rounds"); do
  for pipeline in 1 16; do
    for command in set get; do
      for server in "${servers[@]}"; do run "$server" "$command" "$pipeline"; done
    done
  done
done

echo "## \`redis\` and Redis"
echo
echo "\`redis-benchmark\` with 50 clients, medians of $rounds rounds of $count batches each, interleaved. Each server"
echo "has one thread, on CPU 0, redis-benchmark has CPU 1; the style \`workers\` has two, on both."
echo "$(redis-server --version | sed 's/ sha.*//') keeps nothing on disk, as \`redis\` does."
echo "Latencies are in ms, as the client sees them, CPU time is the server's, in µs per request."
echo
echo "| command | pipeline | server | requests per second | of Redis | min | p50 | p95 | p99 | max | CPU |"
echo "|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|"
for pipeline in 1 16; do
  for command in set get; do
    base=$(median "$work/redis.$command.$pipeline" 1)
    for server in "${servers[@]}"; do
      figures=$(for column in 1 2 3 4 5 6 7; do median "$work/$server.$command.$pipeline" "$column"; done)
      awk -v name="${server/redis/Redis}" -v command="${command^^}" -v pipeline="$pipeline" -v base="$base" \
        -v figures="${figures//$'\n'/ }" 'BEGIN {
        split(figures, of, " ")
        printf "| %s | %d | %s | %d | %.2f | %.3f | %.3f | %.3f | %.3f | %.3f | %.2f |\n",
          command, pipeline, name, of[1], of[1] / base, of[2], of[3], of[4], of[5], of[6], of[7] / 1000
      }'
    done
  done
done
