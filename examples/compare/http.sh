#!/usr/bin/env bash
# Compares the example `http` with nginx on a file of 1 KiB, by wrk; prints a table for RESULTS.md to stdout, and what
# it does to stderr. Both serve with one thread on CPU 0, wrk runs on CPU 1. nginx is configured as usual (sendfile, no
# cache of open files), without an access log.
#
#   examples/compare/http.sh [ROUNDS [SECONDS]]        5 rounds of 5 seconds if not told otherwise; needs Linux and root
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=${1:-5} seconds=${2:-5}
. examples/compare/common.sh
need nginx:nginx-light wrk:wrk
build http
http=$example

work=$(mktemp -d)
pids=()
cleanup() {
  kill "${pids[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT
chmod 755 "$work"
mkdir "$work/root"
head -c 1024 /dev/zero | tr '\0' x >"$work/root/1k.txt"

cat >"$work/nginx.conf" <<CONF
worker_processes 1;
daemon off;
user root;
pid $work/nginx.pid;
error_log $work/error.log;
events { worker_connections 4096; }
http {
  include /etc/nginx/mime.types;
  access_log off;
  sendfile on;
  open_file_cache off;
  keepalive_requests 1000000000;
  server { listen 127.0.0.1:18081; root $work/root; }
}
CONF
boost=()
nice -n -15 true 2>/dev/null && boost=(nice -n -15) # for all three, against whatever else runs here
"${boost[@]}" taskset -c 0 nginx -c "$work/nginx.conf" >&2 &
nginx=$!
pids+=("$nginx")
"${boost[@]}" taskset -c 0 "$http" --root "$work/root" --port 18082 >&2 &
mini=$!
pids+=("$mini")
for port in 18081 18082; do
  for _ in $(seq 50); do
    curl -s -o /dev/null "http://127.0.0.1:$port/1k.txt" && break
    sleep 0.1
  done
done
worker=$(pgrep -P "$nginx")

# The CPU time of a process in nanoseconds, all threads together.
cpu() { cat "/proc/$1"/task/*/schedstat | awk '{ sum += $1 } END { printf "%.0f", sum }'; }

# One run of wrk; appends "rate p99_us cpu_ns errors" to the file of that server. A run in which nothing was answered,
# because somebody has stopped the processes meanwhile, is repeated.
run() { # NAME PID PORT CONNECTIONS
  local before after out
  for _ in 1 2 3 4 5; do
    before=$(cpu "$2")
    out=$("${boost[@]}" taskset -c 1 wrk -t1 -c"$4" -d"${seconds}s" --latency "http://127.0.0.1:$3/1k.txt")
    after=$(cpu "$2")
    if awk -v spent="$before $after" "$figures" <<<"$out" >>"$work/$1.$4"; then
      say "  $1 with $4 connections: $(tail -1 "$work/$1.$4")"
      return
    fi
    say "  $1 with $4 connections: no answer, again"
  done
  say "$1 does not answer"
  exit 1
}

# What wrk says, as numbers.
figures='
  function us(text) {
    if (text ~ /us$/) return text + 0
    if (text ~ /ms$/) return text * 1000
    return text * 1000000
  }
  /99%/ { p99 = us($2) }
  /requests in/ { count = $1 }
  /Requests\/sec/ { rate = $2 }
  /Socket errors|Non-2xx/ { for (i = 1; i <= NF; i++) errors += $i + 0 }
  END {
    if (count == 0) exit 1
    split(spent, cpu, " ")
    printf "%d %d %d %d\n", rate, p99, (cpu[2] - cpu[1]) / count, errors
  }'

# The median of a column.
median() { sort -n -k"$2,$2" "$1" | awk -v column="$2" '{ at[NR] = $column } END { print at[int((NR + 1) / 2)] }'; }
total() { awk -v column="$2" '{ sum += $column } END { print sum + 0 }' "$1"; }

say "server, connections: requests per second, p99 in us, CPU ns per request, errors"
most=0
for _ in $(seq "$rounds"); do
  for connections in 64 256; do
    run nginx "$worker" 18081 "$connections"
    run mini "$mini" 18082 "$connections"
    threads=$(($(find "/proc/$mini/task" -mindepth 1 -maxdepth 1 | wc -l) - 1))
    most=$((threads > most ? threads : most))
  done
done

echo "## \`http\` and nginx"
echo
echo "A file of 1 KiB, GET over connections that are kept alive; medians of $rounds rounds of $seconds s, interleaved."
echo "One thread each on CPU 0, wrk on CPU 1. $(nginx -v 2>&1 | sed 's/.*: //'), \`sendfile on\`, no cache of open"
echo "files, no access log."
echo
echo "| connections | server | requests per second | of nginx | p99, ms | CPU per request, µs | errors |"
echo "|---|---|---|---|---|---|---|"
for connections in 64 256; do
  base=$(median "$work/nginx.$connections" 1)
  for name in nginx mini; do
    file=$work/$name.$connections
    awk -v rate="$(median "$file" 1)" -v base="$base" -v p99="$(median "$file" 2)" -v cpu="$(median "$file" 3)" \
      -v errors="$(total "$file" 4)" -v name="${name/mini/\`http\`}" -v connections="$connections" 'BEGIN {
        printf "| %d | %s | %d | %.2f | %.1f | %.1f | %d |\n", \
          connections, name, rate, rate / base, p99 / 1000, cpu / 1000, errors
      }'
  done
done
echo
echo "Threads of \`http\` beside its own, at most: $most (its bound is 4)."
