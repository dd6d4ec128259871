#!/usr/bin/env bash
# Measures the examples beside the programs they stand in for, and writes examples/RESULTS.md with a chart beside it.
#
#   examples/compare.sh [NAME...]      all of them by default; about nine minutes on two processors; needs root
#
# Each comparison is a script of its own, examples/compare/NAME.sh, which prints a section with tables to stdout and
# what it does to stderr. The chart has a bar for each line of a table that has a column `of SOMETHING`: the ratio to
# that.
set -euo pipefail
cd "$(dirname "$0")"

work=$(mktemp -d)
group=/proc/self/autogroup niceness=
end() {
  rm -rf "$work"
  [ -z "$niceness" ] || echo "$niceness" >"$group"
}
trap end EXIT

# The scheduler shares the processors out between sessions, and nice(1) works inside of one (sched(7), "autogroup").
# Whatever is measured here belongs to this one.
if [ -w "$group" ]; then
  niceness=$(awk '{ print $NF }' "$group")
  echo -15 >"$group" || niceness=
fi

load=$(cut -d' ' -f1-3 /proc/loadavg)
names=("$@")
[ $# -gt 0 ] || names=(redis http http_steps effects)
for name in "${names[@]}"; do
  [ -x "compare/$name.sh" ] || { echo "there is no comparison $name" >&2 && continue; }
  echo "== $name" >&2
  "compare/$name.sh" | tee "$work/$name.md"
done
sections=("$work"/*.md)
[ -e "${sections[0]}" ] || exit 1

{
  printf '# Results\n\nThe examples beside the programs they stand in for, written by this command:\n\n'
  printf '```console\n$ examples/compare.sh %s\n```\n\n' "${names[*]}"
  printf -- '- cpu: %s, %s processors\n' "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)" "$(nproc)"
  printf -- '- kernel: %s\n- compiler: %s\n- load before: %s\n' "$(uname -r)" "$(rustc --version)" "$load"
  printf '\n![time per request, by that of nginx or Redis](results.svg)\n\n'
  for name in "${names[@]}"; do
    [ ! -e "$work/$name.md" ] || { cat "$work/$name.md" && echo; }
  done
} >RESULTS.md

awk -F ' *[|] *' '
  function label(x, y, anchor, words) {
    gsub(/`/, "", words)
    return sprintf("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"#7a828c\">%s</text>\n", \
      x, y + 4, anchor, words)
  }
  NF < 4 { column = 0; next }
  !column {
    for (i = 2; i < NF; i++) if ($i ~ /^of /) { column = i; peer = substr($i, 4) }
    split($0, head)
    next
  }
  /^[|]-/ { next }
  {
    name = ""
    for (i = 2; head[i] != "requests per second"; i++) {
      if ($i == peer) next
      name = name (i > 2 ? ", " : "") ($i ~ /^[0-9]+$/ ? head[i] " " $i : $i)
    }
    names[++count] = name; times[count] = 1 / $column; peers[count] = peer
    if (times[count] > most) most = times[count]
  }
  END {
    left = 300; right = 860; line = 18; top = 46; bottom = top + line * count
    scale = (right - left) / (most > 1.2 ? most : 1.2)
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 %d\" width=\"960\" height=\"%d\" ", \
      bottom + 24, bottom + 24
    print "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">"
    printf "%s", label(8, 16, "start", "Time per request, by that of nginx or Redis: less is better.")
    for (i = 1; i <= count; i++) {
      y = top + line * (i - 0.5)
      colour = times[i] < 0.98 ? "#2f9e58" : times[i] > 1.02 ? "#d1603d" : "#8b949e"
      printf "%s", label(left - 12, y, "end", names[i])
      printf "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"12\" rx=\"2\" fill=\"%s\"/>\n", \
        left, y - 6, times[i] * scale, colour
      printf "%s", label(left + (times[i] < 1 ? 1 : times[i]) * scale + 6, y, "start", \
        sprintf("%.2f of %s", times[i], peers[i]))
    }
    printf "<path d=\"M%.1f %d V%d\" stroke=\"#8b949e\" stroke-width=\"2\"/>\n%s</svg>\n", \
      left + scale, top, bottom, label(left + scale, bottom + 12, "middle", "1")
  }
' "${sections[@]}" >results.svg
echo "written: examples/RESULTS.md, examples/results.svg" >&2
