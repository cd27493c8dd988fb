#!/bin/bash
# SPDX-License-Identifier: MIT
# What packaging/ has for Prometheus and Grafana: it names only metrics of base/metrics.def, each alert is tested, and where promtool is
# installed, rules and the expressions of the dashboard are correct.
set -u
passed=0 failed=0 skipped=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
rules=packaging/prometheus/berth.rules.yml tests=packaging/prometheus/berth.rules-test.yml dashboard=packaging/grafana/berth.json

# check NAME COMMAND...: prints the output of a failed command.
check() {
    local name=$1
    shift
    if "$@" >"$folder/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        cat "$folder/log"
        echo "FAIL: $name"
    fi
}

# The names of series: one for each metric, three for a histogram.
sed -n 's/^METRIC([A-Z_]*, "\([a-z_]*\)", \([A-Z]*\),.*/\2 \1/p' base/metrics.def |
    awk '$1 == "HISTOGRAM" { print $2 "_bucket\n" $2 "_sum\n" $2 "_count"; next } { print $2 }' | sort >"$folder/known"
names_known() {
    grep -oE 'berth_[a-z_]+' "$1" | sort -u >"$folder/named"
    [ -s "$folder/named" ] && [ -z "$(comm -13 "$folder/known" "$folder/named" | tee /dev/stderr)" ]
}
check "base/metrics.def has few rows" [ "$(wc -l <"$folder/known")" -gt 30 ]
for file in $rules $tests $dashboard; do check "$file names an unknown metric" names_known "$file"; done

# Each alert is tested when it fires, for each cause, and when it is silent.
each_alert_tested() {
    local alert n=0
    while read -r alert; do
        n=$((n + 1))
        [ "$(grep -c "alertname=\"$alert\"" "$tests")" -ge 2 ] || { echo "$alert is not tested" && return 1; }
    done < <(sed -n 's/^ *- alert: //p' $rules)
    [ $n -le "$(grep -c 'exp_samples: \[{' "$tests")" ]
}
check "an alert is not tested" each_alert_tested

# Only built-in panels of Grafana; the user can choose the data source of each expression.
plain_dashboard() {
    jq -e '[.panels[].type] | unique == ["stat", "timeseries"]' $dashboard &&
        jq -e '[.panels[].targets[].datasource.uid] | unique == ["${datasource}"]' $dashboard &&
        jq -e '[.panels[].id] | unique | length == ($all | length)' --argjson all "$(jq '[.panels[].id]' $dashboard)" $dashboard
}
check "the dashboard needs a plugin or a data source of its own" plain_dashboard

dashboard_rules() {
    jq '{groups: [{name: "dashboard", rules: [.panels[].targets[].expr | gsub("\\$__rate_interval"; "5m") | {record: "a:b", expr: .}]
        | to_entries | map(.value + {labels: {n: (.key | tostring)}})}]}' $dashboard >"$folder/dashboard.json"
}
if command -v promtool >/dev/null; then
    check "promtool check rules" promtool check rules $rules
    check "promtool test rules" promtool test rules $tests
    check "the dashboard as rules" dashboard_rules
    check "promtool check rules of the dashboard" promtool check rules "$folder/dashboard.json"
else
    echo "SKIP: promtool is not installed (.ci/run full installs it)"
    skipped=1
fi
printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
