#!/usr/bin/env bash
# Makes system calls fail, with strace(1), while programs work on mini, and prints what came of it.
#
#   faults.sh [--short] [WORD...]     only the cases whose line has one of the words in it
#
# Each case has a time limit (a hang), must be idle in the end (a spin), loses no byte, ends with the exit code that it
# should, and the fault must really have happened. strace counts calls for each thread.
#
# Not among the faults: an EAGAIN that is not true, on a descriptor that is registered already. The kernel tells once
# that something is there (epoll(7), EPOLLET), so nobody can survive that; a first EAGAIN is one of the cases. Nor a
# close(2) that does not close, nor futex(2), as strace cannot tell a wait from a wake, which is never interrupted.
set -uo pipefail
cd "$(dirname "$0")/.."
short=
[ "${1:-}" = --short ] && { short=1; shift; }
command -v strace >/dev/null || { echo "no strace"; exit 2; }
cargo build --quiet -p mini-tests --bin faults || exit 2
program=${CARGO_TARGET_DIR:-target}/debug/faults
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
limit=${FAULTS_LIMIT:-100}

# Scenario, workers (0: current_thread), what must come of it, faults (call:error:when, several), which are also the
# errors that callers may see. In the short run only lines that begin with a star, with the number of workers named
# last.
#   works   all is done as if nothing had happened
#   errors  the caller gets the error, makes the call again, and all is done
#   fails   the caller gets the error each time
#   aborts  the process cannot go on, and says so
cases='
* tcp     0,2  works   accept4:EINTR:1+2
* tcp     0,2  works   accept4:ECONNABORTED:1+2
  tcp     0    works   accept4:EAGAIN:1
* tcp     0,2  errors  accept4:EMFILE:1+2
  tcp     0,2  errors  accept4:ENFILE:1+2
  tcp     0,2  errors  accept4:ENOBUFS:1+2
  tcp     0,2  errors  accept4:ENOMEM:1+3
  tcp     0,2  errors  accept4:EPERM:1+3
* tcp     0,2  works   connect:EINTR:1+2
  tcp     0,2  errors  connect:ECONNREFUSED:1+2
  tcp     0,2  errors  connect:EADDRNOTAVAIL:1+3
  tcp     0,2  errors  connect:EAGAIN:1+3
  tcp     0,2  errors  connect:ENETUNREACH:1+3
  tcp     0,2  errors  connect:ETIMEDOUT:1+3
  tcp     0    works   getpeername:ENOTCONN:1
* tcp     0,2  errors  socket:EMFILE:1+2
  tcp     0,2  errors  socket:ENFILE:1+2
  tcp     0,2  errors  socket:ENOBUFS:1+2
  tcp     0,2  errors  socket:ENOMEM:1+2
  tcp     0,2  errors  bind:EADDRINUSE:1
  tcp     0,2  errors  listen:EADDRINUSE:1
* tcp     0,2  works   recvfrom:EINTR:1+2
  tcp     0    works   recvfrom:EAGAIN:1
* tcp     0,2  errors  recvfrom:ECONNRESET:3+17
  tcp     0,2  errors  recvfrom:ETIMEDOUT:3+17
  tcp     0,2  errors  recvfrom:ENOMEM:3+17
* tcp     0,2  works   sendto:EINTR:1+2
* tcp     0,2  errors  sendto:EPIPE:3+17
  tcp     0,2  errors  sendto:ECONNRESET:3+17
  tcp     0,2  errors  sendto:ENOBUFS:3+17
  tcp     0,2  errors  sendmsg:ENOMEM:1+3
  tcp     0,2  works   sendmsg:EINTR:1+2
* tcp     0,2  errors  epoll_ctl:ENOMEM:2+5
  tcp     0,2  errors  epoll_ctl:ENOSPC:2+5
* tcp     0,2  works   epoll_wait:EINTR:1+2
  tcp     0    aborts  epoll_wait:EBADF:3
  timer   0,2  works   prctl:EINVAL:1+1
* unix    0,2  works   recvmsg:EINTR:1+2
  unix    0    works   recvmsg:EAGAIN:1
  unix    0,2  errors  recvmsg:ECONNRESET:3+17
  unix    0,2  works   connect:EINTR:1+2
* unix    0,2  works   connect:EAGAIN:1+5
  unix    0,2  errors  connect:ECONNREFUSED:1+5
  unix    0,2  works   sendto:EINTR:1+2
  unix    0,2  errors  sendto:EPIPE:3+17
  unix    0,2  errors  accept4:EMFILE:1+2
  unix    0,2  errors  socketpair:EMFILE:1+2
* udp     0,2  works   recvfrom:EINTR:1+2
  udp     0,2  errors  recvfrom:ECONNREFUSED:1+3
  udp     0,2  works   sendto:EINTR:1+2
  udp     0    works   sendto:EAGAIN:1
* udp     0,2  errors  sendto:ENOBUFS:1+3
  udp     0,2  errors  sendto:ENETUNREACH:1+3
* trickle 0,2  works   recvfrom:EINTR:1+2,sendto:EINTR:1+2
  trickle 0,2  works   epoll_wait:EINTR:1+2
  pipe    0,2  works   read:EINTR:20+2,write:EINTR:1+2
* pipe    0,2  errors  write:EPIPE:2+7
  pipe    0,2  errors  read:EIO:40+7
  pipe    0,2  errors  pipe2:EMFILE:1+2
* copy    0,2  works   splice:EINTR:1+2
  copy    0,2  works   splice:EINVAL:1+2
  copy    0,2  works   splice:ENOSYS:1+1
  copy    0,2  works   splice:EPERM:2+2
  copy    0    works   splice:EAGAIN:1
* copy    0,2  errors  splice:ENOMEM:3+400
  copy    0,2  works   pipe2:EMFILE:1+1
  copy    0,2  errors  shutdown:ENOTCONN:1+2
* udp     0,2  works   epoll_wait:EINTR:1+2
* udp     0,2  works   timerfd_create:EMFILE:1+1,epoll_pwait2:EINTR:1+2
  udp     0,2  works   timerfd_create:ENOSYS:1+1,epoll_pwait2:ENOSYS:1+1
  udp     0,2  works   timerfd_create:EPERM:1+1,epoll_pwait2:EPERM:1+1
  udp     0,2  works   timerfd_settime:ENOSYS:1+1
* timer   0,2  works   timerfd_settime:ENOSYS:3+1
  wake    0,2  works   write:EAGAIN:1+2
  wake    0,2  works   write:EINTR:1+2
* wake    2,0  works   write:EIO:1+1
  wake    0,2  works   epoll_wait:EINTR:1+2
  wake    0,2  errors  epoll_create1:EMFILE:1
  wake    0,2  errors  eventfd2:EMFILE:1
  wake    0,2  errors  epoll_ctl:ENOMEM:1
* wake    0,2  works   epoll_ctl:ENOMEM:2
* wake    0,2  fails   epoll_create1:ENFILE:1+1
  wake    0,2  fails   eventfd2:ENOMEM:1+1
  wake    0,2  fails   epoll_ctl:ENOSPC:1+1
* thread  0,2  errors  clone3:EAGAIN:1+2,clone:EAGAIN:1+2
  thread  0,2  errors  clone3:EAGAIN:2+2,clone:EAGAIN:2+2
  thread  1    errors  clone3:EAGAIN:1+3,clone:EAGAIN:1+3
  thread  0,2  works   clone3:ENOSYS:1+1
* thread  0    errors  clone3:EAGAIN:1+1,clone:EAGAIN:1+1
* file    0,2  works   openat2:ENOSYS:1+1
  file    0,2  works   openat2:EAGAIN:1+2
  file    0,2  works   openat2:EINTR:1+2
* file    0,2  works   preadv2:EAGAIN:1+2
  file    0,2  works   preadv2:EOPNOTSUPP:1+1
  file    0,2  works   preadv2:EINTR:1+2
  file    0,2  errors  openat:EMFILE:5+3
  file    0,2  errors  openat:EINTR:5+3
  file    0,2  errors  write:ENOSPC:1+2
  file    0,2  works   write:EINTR:1+2
  file    0,2  works   read:EINTR:9+2
  file    0,2  errors  getdents64:EIO:1+7
  file    0,2  errors  mkdir:ENOSPC:1+2
  file    0,2  errors  clone3:EAGAIN:1+2,clone:EAGAIN:1+2
* child   0,2  errors  pidfd_open:EMFILE:1+3
  child   0,2  errors  pidfd_open:ENOMEM:1+3
* child   0,2  works   pidfd_open:ENOSYS:1+1
  child   0,2  works   pidfd_open:EPERM:1+2
* child   0,2  works   wait4:EINTR:1+2,waitid:EINTR:1+2
  child   0,2  works   pidfd_send_signal:ENOSYS:1+1
  child   0,2  errors  pipe2:EMFILE:1+5
  child   0,2  errors  epoll_ctl:ENOMEM:2+5
* signal  0,2  works   recvfrom:EINTR:1+2
  signal  0,2  errors  socketpair:EMFILE:1
  signal  0,2  errors  rt_sigaction:EINVAL:30+1
  signal  0,2  works   epoll_wait:EINTR:1+2
'

failed=0 count=0
begin=$(date +%s)
printf '%-8s %-7s %-7s %-52s %8s  %s\n' scenario workers should faults happened result

# one SCENARIO WORKERS SHOULD FAULTS
one() {
  local scenario=$1 workers=$2 should=$3 faults=$4 inject=() names=() calls= fault call error when
  for fault in ${faults//,/ }; do
    IFS=: read -r call error when <<<"$fault"
    inject+=(-e "inject=$call:error=$error:when=$when")
    calls+=${calls:+,}$call
    names+=("$error")
  done
  [ "$should" = works ] && names=()
  # In a shell of its own, which says that somebody was aborted.
  (
    timeout -k 5 "$limit" strace -f -qq -o "$out/trace" -e "trace=$calls" "${inject[@]}" \
      "$program" "$scenario" "$workers" ${names[@]+"${names[@]}"} >"$out/said" 2>&1 </dev/null
    exit $?
  ) 2>/dev/null
  local code=$? happened result=ok
  happened=$(grep -c INJECTED "$out/trace")
  case $should:$code in
    works:0 | errors:0 | fails:3 | aborts:134) ;;
    *:124 | *:137) result="HANGS" ;;
    *) result="FAILS with $code" ;;
  esac
  [ "$happened" -gt 0 ] || result="NOTHING HAPPENED"
  count=$((count + 1))
  printf '%-8s %-7s %-7s %-52s %8s  %s\n' "$scenario" "$workers" "$should" "$faults" "$happened" "$result"
  [ "$result" = ok ] || {
    failed=$((failed + 1))
    grep -v '^mini: could not start' "$out/said" | tail -n 8 | sed 's/^/    /'
  }
}

while read -r line; do
  [ -n "$line" ] || continue
  [ -z "$short" ] || [[ $line == \** ]] || continue
  if [ $# -gt 0 ]; then
    for word; do [[ $line == *"$word"* ]] && break; done || true
    [[ $line == *"$word"* ]] || continue
  fi
  read -r scenario list should faults <<<"${line#\*}"
  [ -z "$short" ] || list=${list##*,}
  for workers in ${list//,/ }; do one "$scenario" "$workers" "$should" "$faults"; done
done <<<"$cases"

# Without a fault: small buffers and a slow peer.
for workers in 0 2; do
  timeout -k 5 "$limit" "$program" trickle "$workers" >"$out/said" 2>&1 || { failed=$((failed + 1)); cat "$out/said"; }
  count=$((count + 1))
done
echo "$count cases, $failed failed, $(($(date +%s) - begin)) s"
[ "$failed" -eq 0 ]
