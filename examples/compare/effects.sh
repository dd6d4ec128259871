#!/usr/bin/env bash
# Runs the examples that measure an effect, and prints what they say as a section of RESULTS.md to stdout.
#
#   examples/compare/effects.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

. examples/compare/common.sh

show() { # EXAMPLE WHAT ARGUMENTS...
  build "$1"
  echo
  echo "### \`$1\`: $2"
  echo
  echo '```text'
  "$example" "${@:3}"
  echo '```'
}

echo "## What the programs show"
echo
echo "Printed by the programs themselves; the tests assert these effects, as ratios."
show threads_of_a_loop "is a loop with several threads worth it?"
show http_steps "what each step of a web server brings"
show priority "new clients wait, and the connected do not notice"
show levels "control before data before new clients before what may wait"
show workers "threads of low priority give way to the loop"
show frames "mini inside a loop of frames"
show phases "where a turn of the loop goes" --turns 2
