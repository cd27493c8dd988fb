# SPDX-License-Identifier: MIT
# Draws the records of the commands of a demo (sorted by time) as an SVG: a row for each permit, a bar for each run that held it.
# demo.sh calls it if DEMO_PICTURE names a file. pools="db:4 net:2".
BEGIN {
    left = 64; width = 840; row = 17; gap = 34
    color["ant"] = "#2f6f9f"; color["bee"] = "#d98e04"; color["cow"] = "#5b8c5a"
    n_pools = split(pools, list, " ")
    top = 56
    for (i = 1; i <= n_pools; i++) {
        split(list[i], part, ":")
        limit[part[1]] = part[2]
        above[part[1]] = top
        top += part[2] * row + gap
    }
}
NR == 1 { begin = $1 }
{ now = ($1 - begin) / 1e9 }
{
    n = split($4, claims, ",")
    for (i = 1; i <= n; i++) {
        split(claims[i], claim, ":")
        pool = claim[1]
        for (k = 1; k <= claim[2]; k++) {
            if ($2 == "start") {
                for (r = 1; (pool, r) in holder; r++);
                holder[pool, r] = $3
                since[pool, r] = now
            } else {
                for (r = 1; !((pool, r) in holder) || holder[pool, r] != $3; r++);
                bar(pool, r, since[pool, r], now, $5, $6)
                delete holder[pool, r]
            }
        }
    }
    if (now > last) last = now
}
function bar(pool, r, from, to, host, job) {
    bars[++n_bars] = pool " " r " " from " " to " " host " " job
}
function text(x, y, anchor, words) {
    printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor, words
}
END {
    scale = width / last
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", left + width + 16, top
    printf "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n<g fill=\"#24292f\">\n"
    text(8, 20, "start", "make demo: three hosts share pools db (4 permits) and net (2 permits). A bar is a run that holds a permit, as its command wrote it down.")
    x = left
    split("ant bee cow", hosts, " ")
    for (i = 1; i <= 3; i++) {
        printf "<rect x=\"%d\" y=\"30\" width=\"12\" height=\"12\" rx=\"2\" fill=\"%s\"/>\n", x, color[hosts[i]]
        text(x + 17, 40, "start", "host " hosts[i])
        x += 84
    }
    for (pool in limit) {
        text(left - 10, above[pool] + limit[pool] * row / 2 + 4, "end", pool)
        for (s = 0; s + 1 < last; s += 5) {
            printf "<path d=\"M%.1f %d v%d\" stroke=\"#d0d7de\"/>\n", left + s * scale, above[pool], limit[pool] * row
            text(left + s * scale, above[pool] + limit[pool] * row + 15, "middle", s " s")
        }
    }
    print "</g>\n<g font-size=\"10\" fill=\"#ffffff\">"
    for (i = 1; i <= n_bars; i++) {
        split(bars[i], b, " ")
        x = left + b[3] * scale
        w = (b[4] - b[3]) * scale
        y = above[b[1]] + (b[2] - 1) * row
        printf "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"2\" fill=\"%s\"/>\n", x, y + 1, (w > 1 ? w - 0.8 : w), row - 2, color[b[5]]
        if (w > 5.7 * length(b[6])) text(x + w / 2, y + row - 5, "middle", b[6])
    }
    print "</g>"
    for (pool in limit) {
        y = above[pool] + limit[pool] * row
        printf "<path d=\"M%d %d h%d\" stroke=\"#cf222e\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\"/>\n", left, y + 1, width
        printf "<g fill=\"#cf222e\" font-size=\"11\">"
        text(left + width, y + 14, "end", "limit " limit[pool])
        print "</g>"
    }
    print "</svg>"
}
