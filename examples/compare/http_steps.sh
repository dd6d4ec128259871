#!/usr/bin/env bash
# Compares the four servers of the example `http_steps` with nginx and Apache, by the example's own twenty clients;
# prints a table for RESULTS.md to stdout, and what it does to stderr. Servers run on CPU 0, the clients on CPU 1.
#
#   examples/compare/http_steps.sh [ROUNDS [MILLISECONDS]]     5 rounds of 1000 ms by default; needs Linux and root
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=${1:-5} span=${2:-1000}
. examples/compare/common.sh
need nginx:nginx-light apache2
build http_steps
steps=$example

work=$(mktemp -d)
servers=(nginx Apache 1 2 3 4)
declare -A names=([1]='one after the other' [2]='a thread for each' [3]='a loop' [4]='a loop, and threads for files')
declare -A pids
trap 'kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir "$work/root"
head -c 4096 /dev/zero | tr '\0' x >"$work/root/index.html"

cat >"$work/nginx.conf" <<CONF
worker_processes 1;
daemon off;
user root;
pid $work/nginx.pid;
error_log $work/error.log;
events { worker_connections 4096; }
http { access_log off; sendfile on; server { listen 127.0.0.1:18091; root $work/root; } }
CONF

# The modules of Debian's default configuration that serve files, with the event MPM and its defaults.
modules=/usr/lib/apache2/modules
cat >"$work/apache.conf" <<CONF
ServerName localhost
PidFile $work/apache.pid
ErrorLog $work/apache.log
Listen 127.0.0.1:18092
LoadModule mpm_event_module $modules/mod_mpm_event.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule dir_module $modules/mod_dir.so
LoadModule mime_module $modules/mod_mime.so
TypesConfig /etc/mime.types
DocumentRoot $work/root
CONF

boost=()
nice -n -15 true 2>/dev/null && boost=(nice -n -15) # for all of them, against whatever else runs here

port() { # SERVER
  case $1 in nginx) echo 18091 ;; Apache) echo 18092 ;; *) echo "1810$1" ;; esac
}

start() { # SERVER COMMAND...
  "${boost[@]}" taskset -c 0 "${@:2}" >&2 &
  pids[$1]=$!
  for _ in $(seq 100); do
    curl -s -o /dev/null "http://127.0.0.1:$(port "$1")/" && return
    sleep 0.05
  done
  say "$1 does not answer"
  exit 1
}
start nginx nginx -c "$work/nginx.conf"
start Apache apache2 -DFOREGROUND -f "$work/apache.conf"
for step in 1 2 3 4; do
  start "$step" "$steps" --serve "$step" --port "$(port "$step")" --disk 0
done

# The processes of a server, and their memory in kB: what is shared between them is divided (proc(5), Pss).
processes() { echo "$1"; pgrep -P "$1" || true; }
memory() {
  processes "$1" | while read -r pid; do awk '/^Pss:/ { print $2 }' "/proc/$pid/smaps_rollup"; done |
    awk '{ sum += $1 } END { print sum }'
}
threads() { processes "$1" | while read -r pid; do ls "/proc/$pid/task"; done | wc -l; }

# One run; appends "rate p99_ms rate_beside_a_slow_client memory_kB threads" to the file of that server.
run() { # SERVER
  local line pid=${pids[$1]}
  "${boost[@]}" taskset -c 1 "$steps" --ask "127.0.0.1:$(port "$1")" --milliseconds "$span" >"$work/line" &
  local client=$!
  sleep "$(awk -v span="$span" 'BEGIN { print span / 2000 }')"
  local used="$(memory "$pid") $(threads "$pid")"
  wait "$client"
  line=$(cut -c30- "$work/line")
  awk -v used="$used" '{ print $1, $2, $(NF - 1), used }' <<<"$line" >>"$work/$1"
  say "  ${names[$1]:-$1}: $(tail -1 "$work/$1")"
}

# The median of a column.
median() { sort -n -k"$2,$2" "$1" | awk -v column="$2" '{ at[NR] = $column } END { print at[int((NR + 1) / 2)] }'; }

say "server: requests per second, p99 in ms, requests per second beside a slow client, memory in kB, threads"
for _ in $(seq "$rounds"); do
  for server in "${servers[@]}"; do run "$server"; done
done

echo "## The steps of \`http_steps\`, nginx and Apache"
echo
echo "Twenty clients, a new connection for each request, a file of 4 KiB; medians of $rounds rounds of $span ms,"
echo "interleaved. Servers have CPU 0, the clients CPU 1. $(nginx -v 2>&1 | sed 's/.*: //') with one worker,"
echo "$(apache2 -v | sed -n 's/.*: \(Apache[^ ]*\).*/\1/p') with the event MPM and its defaults."
echo "The slow client sends half a request. Memory and threads are those of all processes of a server."
echo
echo "| server | requests per second | of nginx | p99, ms | beside a slow client | memory, MB | threads |"
echo "|---|---|---|---|---|---|---|"
base=$(median "$work/nginx" 1)
for server in "${servers[@]}"; do
  figures=$(for column in 1 2 3 4 5; do median "$work/$server" "$column"; done)
  awk -v name="${names[$server]:-$server}" -v base="$base" -v figures="${figures//$'\n'/ }" 'BEGIN {
    split(figures, of, " ")
    printf "| %s | %d | %.2f | %.1f | %d | %.1f | %d |\n", name, of[1], of[1] / base, of[2], of[3], of[4] / 1024, of[5]
  }'
done
