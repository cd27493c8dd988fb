# SPDX-License-Identifier: MIT
# Fills the rows of base/journal/events.def into a man page, at the line @EVENTS SECTION@. awk -f events.awk events.def page.scd
function unquote(text) {
    gsub(/\\"/, "\001", text)
    gsub(/"/, "", text)
    gsub(/\001/, "\"", text)
    return text
}
FNR == NR && /^\/\* @.*@ \*\/$/ { section = substr($2, 2, length($2) - 2) }
FNR == NR && /^EVENT\(/ {
    split($0, part, "\"")
    name = part[2]
    text = ""
    next
}
FNR == NR && /^      "/ {
    text = text $0
    if (/\)$/) {
        sub(/\)$/, "", text)
        gsub(/"      "/, "", text)
        sub(/^ +/, "", text)
        lists[section] = lists[section] "*" name "*\n\t" unquote(text) "\n\n"
    }
}
FNR == NR { next }
/^@EVENTS .*@$/ {
    printf "%s", lists[substr($2, 1, length($2) - 1)]
    next
}
{ print }
