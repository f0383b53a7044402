#!/bin/sh
# A digest of a large text with sh and awk: trouble, rare lines, common kinds, both ends.
# usage: overflow_shell.sh FILE TOKENS
set -eu
if [ $# -ne 2 ]; then
    echo "usage: overflow_shell.sh FILE TOKENS" >&2
    exit 2
fi
LC_ALL=C
export LC_ALL
awk -v room="$(($2 * 2))" '
function show(name, list, count, part,    i, text, used, said) {
    for (i = 1; i <= count; i++) {
        text = substr(list[i], 1, 240)
        if (used + length(text) + 1 > part) break
        if (!said++) print name
        print text
        used += length(text) + 1
    }
    return used + (said ? length(name) + 1 : 0)
}
{
    gsub(/\r/, "")
    if (NR <= 5) head[NR] = $0
    last[NR % 5] = $0
    kind = $0
    gsub(/0x[0-9a-fA-F]+/, "#", kind)
    gsub(/[0-9]+/, "", kind)
    if (!(kind in times)) {
        low = tolower($0)
        is_bad = low ~ /error|exception|fatal|fail|panic|critical|traceback|segmentation|denied|refused|timed out|timeout|cannot|could not|unable|not found|assert|killed|corrupt|invalid|unexpected/
        if (kinds < 20000 || is_bad) {
            order[++kinds] = kind
            example[kind] = NR ": " $0
            bad[kind] = is_bad
            times[kind] = 0
        } else {
            unkept++
            next
        }
    }
    times[kind]++
}
END {
    title = NR " lines, " kinds " kinds of lines" (unkept ? " and " unkept " lines more" : "")
    print title
    room -= length(title)
    n = NR < 5 ? NR : 5
    room -= show("first lines", head, n, room * 0.08)
    for (i = 1; i <= n; i++) tail[i] = last[(NR - n + i) % 5]
    room -= show("last lines", tail, n, room * 0.08)
    for (i = 1; i <= kinds; i++) {
        kind = order[i]
        text = example[kind] (times[kind] > 1 ? " x" times[kind] : "")
        if (times[kind] * 50 > NR && commons < 8) common[++commons] = text
        # Buckets by how often: what is seen once comes first.
        place = times[kind] == 1 ? 1 : times[kind] <= 3 ? 2 : times[kind] <= 10 ? 3 : 4
        if (bad[kind]) trouble[place, ++troubles[place]] = text
        else rare[place, ++rares[place]] = text
    }
    room -= show("common", common, commons, room * 0.1)
    for (place = 1; place <= 4; place++) {
        for (i = 1; i <= troubles[place]; i++) all_bad[++bads] = trouble[place, i]
        if (place < 4) for (i = 1; i <= rares[place]; i++) all_rare[++odds] = rare[place, i]
    }
    room -= show("trouble", all_bad, bads, room * 0.6)
    show("rare", all_rare, odds, room)
}
' "$1"
