#!/bin/bash
# SPDX-License-Identifier: MIT
# The shipped hooks (conf/examples/hooks), with a sendmail, a curl and a berth of this test's own.
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0 skipped=0
hooks=$PWD/conf/examples/hooks
mkdir "$folder/bin" "$folder/credentials" || exit 1

# Each notes its arguments and what it reads.
for program in sendmail curl; do
    cat >"$folder/bin/$program" <<END
#!/bin/sh
printf '%s\n' "\$@" >"$folder/$program.arguments"
cat >"$folder/$program.input"
exit \$(cat "$folder/status")
END
done
cat >"$folder/bin/berth" <<END
#!/bin/sh
echo "the output of \$2"
END
chmod +x "$folder"/bin/*
echo 0 >"$folder/status"
echo 'url = "https://secret.example.org"' | tee "$folder/credentials/webhook" "$folder/credentials/ping-failure" >/dev/null

check() {
    if [ "$2" = "$3" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL: $1: is \"$2\", expected \"$3\""
    fi
}

has() {
    if grep -qxF -- "$2" "$folder/$1"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        cat "$folder/$1"
        echo "FAIL: $1 lacks \"$2\""
    fi
}

# The environment of a hook whose job failed, and nothing else.
run() {
    env -i PATH="$folder/bin:/usr/bin:/bin" TO=ops@example.org CREDENTIALS_DIRECTORY="$folder/credentials" SECRET=no \
        BERTH_OF_JOB=backup BERTH_OF_EVENT="${2:-failure}" BERTH_OF_HOST=ant BERTH_OF_RUN="${3-0123}" BERTH_OF_EXIT_CODE=3 \
        BERTH_OF_REASON='a "quoted" reason' "$hooks/$1.sh" </dev/null >"$folder/output" 2>&1
}

run mail
check 'mail.sh' $? 0
check 'the arguments of sendmail' "$(cat "$folder/sendmail.arguments")" -t
has sendmail.input 'To: ops@example.org'
has sendmail.input 'Subject: [berth] backup failure on ant'
has sendmail.input 'BERTH_OF_EXIT_CODE=3'
has sendmail.input 'the output of 0123'
check 'a mail has the facts alone' "$(grep -c SECRET "$folder/sendmail.input")" 0
run mail overdue ''
check 'mail.sh without a run' $? 0
check 'no run, no lines' "$(grep -c 'last lines' "$folder/sendmail.input")" 0
echo 75 >"$folder/status"
run mail
check 'mail.sh where sendmail fails' $? 75

echo 0 >"$folder/status"
run ping
check 'ping.sh' $? 0
has curl.arguments "$folder/credentials/ping-failure"
echo 22 >"$folder/status"
run ping
check 'ping.sh where curl fails' $? 22

echo 0 >"$folder/status"
if command -v jq >/dev/null; then
    run webhook
    check 'webhook.sh' $? 0
    has curl.arguments "$folder/credentials/webhook"
    check 'the posted job' "$(jq -r .BERTH_OF_JOB "$folder/curl.input")" backup
    check 'the posted reason' "$(jq -r .BERTH_OF_REASON "$folder/curl.input")" 'a "quoted" reason'
    check 'only facts are posted' "$(jq -r 'has("SECRET")' "$folder/curl.input")" false
else
    skipped=1
    echo "SKIP: webhook.sh: jq is not installed"
fi
check 'no secret in an argument' "$(grep -c secret "$folder/curl.arguments")" 0

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
