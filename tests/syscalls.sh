#!/usr/bin/env bash
# Counts the system calls of the echo server with strace(1): per message one recvfrom, one sendto and at most one wait,
# nothing else once the connections are set up (but for sockets that follow their tasks from worker to worker); and none
# at all while nothing happens.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet --release --example echo
echo_bin=${CARGO_TARGET_DIR:-target}/release/examples/echo
out=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$out"' EXIT

for workers in 1 2; do
  "$echo_bin" serve 127.0.0.1:0 --workers "$workers" > "$out/address$workers" & server=$!
  pids+=("$server")
  for _ in $(seq 100); do grep -qs serving "$out/address$workers" && break; sleep 0.05; done
  address=$(sed -n 's/.*serving on //p' "$out/address$workers")

  # Steady state: the load connects, then talks for four seconds; strace looks on for one of them.
  "$echo_bin" load "$address" --connections $((8 / workers / workers)) --seconds 4 > "$out/load" & load=$!
  pids+=("$load")
  for _ in $(seq 100); do grep -qs connected "$out/load" && break; sleep 0.05; done
  sleep 0.5
  timeout -s INT 1 strace -f -c -S calls -o "$out/busy" -p "$server" 2>/dev/null || true
  wait "$load"

  # Idle: long enough after the load that everything has settled.
  sleep 0.5
  # Attaching interrupts the waits, so the first half second does not count.
  timeout -s INT 1.5 strace -f -ttt -o "$out/idle" -p "$server" 2>/dev/null || true
  kill "$server"; wait "$server" 2>/dev/null || true

  awk -v workers="$workers" '
    $NF ~ /^[a-z_0-9]+$/ && $1 ~ /^[0-9.]+$/ && $NF != "total" { calls[$NF] = $4 }
    END {
      recv = calls["recvfrom"]; send = calls["sendto"]; wait = calls["epoll_wait"] + calls["epoll_pwait2"]
      delete calls["recvfrom"]; delete calls["sendto"]; delete calls["epoll_wait"]; delete calls["epoll_pwait2"]
      for (name in calls) { rest = rest " " name "=" calls[name]; others += calls[name] }
      printf "%d worker(s), per message: recvfrom %.3f  epoll_wait %.3f  others %.4f%s\n", workers, recv / send, wait / send, others / send, rest
      if (send < 1000 || recv / send > 1.02 || wait / send > 1.02) exit 1
      if (workers == 1 && others / send > 0.01) exit 1
      # With several workers a thread looks once a millisecond whether one is stuck (futex), as they are under strace now
      # and then, and then calls the other one (write).
      if (workers > 1 && calls["write"] / send > 0.1) exit 1
      # A task that has gone to another worker takes its sockets along: two calls, and seldom.
      if (calls["epoll_ctl"] / send > (workers > 1 ? 0.002 : 0)) exit 1
      if (calls["timerfd_settime"] + calls["read"] > 0) exit 1
    }' "$out/busy" || { echo "more system calls than promised:"; cat "$out/busy"; exit 1; }

  idle=$(awk 'NR == 1 { begin = $2 } $2 > begin + 0.5 && !/detached|\+\+\+|---/' "$out/idle" | wc -l)
  echo "$workers worker(s), idle for a second: $idle system calls"
  [ "$idle" -eq 0 ] || { cat "$out/idle"; exit 1; }
done
