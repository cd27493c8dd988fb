# SPDX-License-Identifier: MIT
# Fills the rows of base/metrics.def into a man page, at the line @METRICS@. awk -f metrics.awk metrics.def page.scd
function mark(text) {
    gsub(/[_*]/, "\\\\&", text)
    gsub(/`berth run`/, "*berth run*", text)
    return text
}
FNR == NR && /^METRIC\(/ { row = "" }
FNR == NR { row = row $0 }
FNR == NR && /^(METRIC\(| ).*"\)$/ {
    split(row, part, "\"")
    type = tolower(part[3])
    gsub(/[ ,]/, "", type)
    labels = mark(part[4])
    gsub(/[^,]+/, "_&_", labels)
    gsub(/,/, ", ", labels)
    list = list "*" part[2] "* (" type (labels == "" ? "" : "; " labels) ")\n\t" mark(part[6]) "\n\n"
}
FNR == NR { next }
/^@METRICS@$/ {
    printf "%s", list
    next
}
{ print }
