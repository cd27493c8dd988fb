#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that phrases which HACKING.md (English, Glossary) rules out stay out of sources, tests and documents.
set -u
bad=0
# One extended regular expression a line.
words='
gather(s|ed|ing)?
bur(y|ies|ied|ial|ying)
unsaid
whose each
says? its
all the same
anew
unheard
hears of
beaten
foretold
so long as
for so long
so long (before|after)
is one, too
asked for again
(is|are|was|were|be|been|being|has|have|not|nobody) told
says so
who waits
who asks
in vain
heard of
'
while read -r word; do
    [ -n "$word" ] || continue
    if grep -rnIiwE --exclude-dir=.git --exclude-dir=build --exclude-dir=corpus --exclude=lessons.txt --exclude=check-words.sh -e "$word" .; then
        echo "words: \"$word\": HACKING.md has the words to use instead"
        bad=1
    fi
done <<END
$words
END
exit $bad
