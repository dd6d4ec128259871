#!/usr/bin/env bash
# Some turns send a reader back to the start of the sentence, above all one who reads in a second language. This counts
# them in the pages and public docs, prints where they are, and fails if there are more than BOUND in a thousand
# sentences. tests/words.allowed has the sentences that are right all the same. Called without arguments, from anywhere.
# Of the kernel users see a few types.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files README.md SECURITY.md CONTRIBUTING.md examples/README.md 'runtime/guide/*.md' {runtime,net,time}/'*.rs' |
  grep -v -e /tests -e /examples/ -e /models |
  grep -vP '^runtime/kernel/(?!src/(task/(error|id|join|shared_join)|scheduler/shutdown)\.rs)' | BOUND=1 perl -CSD -e '
use strict;
use warnings;
use utf8;

my @turns = ( # a pattern, and what to write instead
  [qr/^(What|Who|Whom|Whose|Which|Where|How|Whether|Whatever|Whoever)\b[^?]*\.$/, "begin with a noun or a verb"],
  [qr/(^|[:;] )Of (the|each|all|its|these|those|several|what|every)\b/, "move \"of\" behind its noun"],
  [qr/\balso (if|when|where|while|with|without|before|after|though|under)\b/, "\"even\", or \"and also\""],
  [qr/\b(tells?|told|telling) (of|about|it|that|them|on|once)\b|\b(is|are) told\b/i, "report, return, show"],
  [qr/^(The same (for|as|of)\b|As (above|before)\b|Likewise\b|Also\b|Th(at|ose) of\b)/, "name what is meant"],
  [qr/\b(that|those|it|one) (of|which|that|who) (that|those|it|one|which|whom)\b/, "repeat the noun"],
  [qr/\b(goes|go|went|going) on\b|\bstands? (in (the|a|its)|at|here|there|before|alone)\b/, "continue, remain, mean"],
  [qr/\b(in the mean|so many|hardly|in vain|be it|meanwhile|nobody|for good)\b/, "on average, n, rarely, no task"],
  [qr/\b(lets? go of|comes? to (it|be|lie)|beside (it|them|that|this|tasks|others))\b/, "release, reach, while .. run"],
);

chomp(my @files = <STDIN>);
my %text = map { open(my $file, "<", $_) or die "$_: $!"; $_ => [map { s/^\s+|\s+$//gr } <$file>] } @files;
my %public = map { $_ => 1 } "lib", map { /^pub mod (\w+);/ ? $1 : () } map { @$_ } values %text;
open(my $list, "<", "tests/words.allowed") or die $!;
my %used = map { /^"(.*)": / ? ($1 => 0) : () } <$list>;
my ($sentences, $found) = (0, 0);

sub check {
  my ($place, $block) = @_;
  for my $sentence (split /(?<=[.?!]) /, $block) {
    $sentences++;
    my $bare = $sentence =~ s/`[^`]*`/X/gr =~ s/\[([^\]]*)\](\([^)]*\))?/$1/gr;
    my ($turn) = grep { $bare =~ $_->[0] } @turns or next;
    if (my ($allowed) = grep { index($sentence, $_) >= 0 } keys %used) { $used{$allowed}++; next }
    $found++;
    print "$place: $sentence\n    $turn->[1]\n";
  }
}

# Paragraphs and list items, without code, tables and headings.
sub paragraphs {
  my ($file, $first, @lines) = @_;
  my ($is_code, $begin, $block) = (0, 0, "");
  my $end = sub { check("$file:$begin", $block) if $block; $block = "" };
  for my $at (0 .. $#lines) {
    my $line = $lines[$at];
    $is_code = !$is_code if $line =~ /^```/;
    if ($is_code || $line =~ /^(```|[|#<]|$)/) { $end->(); next }
    $end->() if $line =~ s/^- //;
    $begin = $first + $at if !$block;
    $block .= ($block && " ") . $line;
  }
  $end->();
}

for my $file (@files) {
  my @lines = @{$text{$file}};
  if ($file =~ /\.md$/) { paragraphs($file, 1, @lines); next }
  my $is_public = $public{$file =~ s/.*\/|\.rs$//gr};
  for (my $at = 0; $at < @lines; $at++) {
    my $begin = $at;
    $at++ while $at < @lines && $lines[$at] =~ m{^//[/!]};
    my $item = $at;
    $item++ while $item < @lines && $lines[$item] =~ /^#\[/;
    my $is_of_item = ($lines[$item] // "") =~ /^(pub |macro_rules!)/;
    my $is_shown = $at > $begin && ($lines[$begin] =~ m{^//!} ? $is_public : $is_of_item);
    paragraphs($file, $begin + 1, map { s{^//[/!] ?}{}r } @lines[$begin .. $at - 1]) if $is_shown;
  }
}

my @stale = grep { !$used{$_} } keys %used;
print "not in the text, but in tests/words.allowed: $_\n" for @stale;
printf "%d such turns in %d sentences\n", $found, $sentences;
exit(@stale || $sentences < 1000 || $found * 1000 > $ENV{BOUND} * $sentences);
'
