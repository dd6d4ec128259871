#!/usr/bin/env bash
# Counts the system calls of the echo server with strace(1): per message one recvfrom, one sendto and at most one wait,
# nothing else once the connections are set up; and none at all while nothing happens.
#
# Tracing a call slows it down a hundredfold, and a worker stopped by the tracer looks stuck to its runtime, which then
# calls another one. So what must not happen is counted at full speed: a filter in the kernel (seccomp) lets the calls
# that belong to each message pass untraced.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet --release --example echo
echo_bin=${CARGO_TARGET_DIR:-target}/release/examples/echo
out=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$out"' EXIT

# serve NAME WORKERS [COMMAND...]: starts a server, through a command if one is given. Sets `server` and `address`.
serve() {
  "${@:3}" "$echo_bin" serve 127.0.0.1:0 --workers "$2" > "$out/$1" & server=$!
  pids+=("$server")
  for _ in $(seq 100); do grep -qs serving "$out/$1" && break; sleep 0.05; done
  address=$(sed -n 's/.*serving on \([^;]*\);.*/\1/p' "$out/$1")
}

# load CONNECTIONS: starts four seconds of messages to `address`, and returns when they flow. Sets `load`.
load() {
  "$echo_bin" load "$address" --connections "$1" --seconds 4 > "$out/load" & load=$!
  pids+=("$load")
  for _ in $(seq 100); do grep -qs connected "$out/load" && break; sleep 0.05; done
  sleep 0.5
}

# at_full_speed: all calls but those that belong to a message, during two seconds, and but those of the monitor, which
# reads CPU times and waits (futex).
at_full_speed() {
  serve "fast$workers" "$workers" strace -f --seccomp-bpf -ttt -o "$out/rare" \
    -e 'trace=!recvfrom,sendto,epoll_wait,epoll_pwait2,futex,clock_gettime'
  load 8
  local begin rate
  begin=$(date +%s.%N)
  wait "$load"
  pkill -P "$server"; wait "$server" 2>/dev/null || true
  rate=$(awk '/messages per second/ { print $4 }' "$out/load")
  awk -v workers="$workers" -v begin="$begin" -v messages="$((rate * 2))" '
    $2 > begin && $2 < begin + 2 && $3 ~ /^[a-z_0-9]+\(/ { sub(/\(.*/, "", $3); calls[$3]++; all++ }
    END {
      for (name in calls) list = list " " name "=" calls[name]
      printf "%d worker(s), beside %d messages: %d other system calls%s\n", workers, messages, all, list
      # Nothing is registered anew. The monitor looks now and then whether a worker waits for a CPU.
      exit messages < 1000 || calls["epoll_ctl"] > 0 || all > (workers > 1 ? messages / 250 : 0)
    }' "$out/rare"
}

for workers in 1 2; do
  # The least of three tries: other programs on the machine make a runtime of several workers see to those that wait.
  for try in 1 2 3; do
    at_full_speed && break
    [ "$try" -lt 3 ] || { echo "more system calls than promised"; exit 1; }
  done

  # Each call of the workers counted, for a second. The monitor takes workers that the tracer stops for stuck ones: it
  # looks closer (openat, read), and waits in their place.
  serve "slow$workers" "$workers"
  load $((8 / workers / workers))
  mapfile -t threads < <(grep -L -- -monitor /proc/"$server"/task/*/comm | sed 's|.*/task/\(.*\)/comm|-p\1|')
  timeout -s INT 1 strace -c -S calls -o "$out/busy" "${threads[@]}" 2>/dev/null || true
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
      printf "%d worker(s), per message: recvfrom %.3f  epoll_wait %.3f  others %.4f%s\n", \
        workers, recv / send, wait / send, others / send, rest
      if (send < 200 || recv / send > 1.02 || wait / send > 1.02) exit 1
      # Of several workers some are called (futex), and called back to the reactor (write), or hear what the monitor
      # has waited for (read).
      if (workers > 1) others -= calls["futex"]
      if (others / send > (workers > 1 ? 0.1 : 0.01) || calls["timerfd_settime"] > 0) exit 1
    }' "$out/busy" || { echo "more system calls than promised:"; cat "$out/busy"; exit 1; }

  idle=$(awk 'NR == 1 { begin = $2 } $2 > begin + 0.5 && !/detached|\+\+\+|---/' "$out/idle" | wc -l)
  echo "$workers worker(s), idle for a second: $idle system calls"
  [ "$idle" -eq 0 ] || { cat "$out/idle"; exit 1; }
done
