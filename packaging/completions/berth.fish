# SPDX-License-Identifier: MIT
# Completion of berth(1) for fish: verbs, options, and the current names of pools, jobs, runs and claims.

# Prints KEY (name, run, claim, instance_of) of each object in `berth VERB --json`, with the caller's --socket. Each key is put on a
# line of its own; quotes inside a text have a backslash, so only keys begin a line. Holders and queue have names, too: they are removed.
function __berth_live -a key verb
    set -l words (commandline -opc)
    set -l socket
    set -l drop 's/^$//'
    if set -l at (contains -i -- --socket $words)
        set socket --socket $words[(math $at + 1)]
    end
    test $key = name; and set drop 's/"holders": *\[[^]]*\]//g; s/"queue": *\[[^]]*\]//g'
    timeout 2 berth $socket $argv[2..-1] --json 2>/dev/null | tr -d '\n' | sed -e $drop | tr ',{' '\n\n' |
        sed -n "s/^ *\"$key\": *\"\([^\"]*\)\".*/\1/p" | sort -u
end

# Pools for permits. For a pattern `tenant/*` first the begin of its keys, `tenant/`, and then the keys in use.
function __berth_keys
    set -l typed (commandline -ct)
    __berth_live name pools | sed 's|/\*$|/|'
    if string match -q '*/*' -- $typed
        __berth_live name pools (string split -m 1 / -- $typed)[1]'/*' | grep -v '/\*$'
    end
end

# The verb that was typed, if there is one.
function __berth_verb
    set -l words (commandline -opc)
    set -e words[1]
    while set -q words[1]
        switch $words[1]
            case --socket
                set -e words[1]
            case '-*'
            case '*'
                echo $words[1]
                return 0
        end
        set -e words[1]
    end
    return 1
end
function __berth_is
    contains -- (__berth_verb; or echo none) $argv
end
# After `berth run ... --` there is another command, with its own completion.
function __berth_in_command
    __berth_is run; and contains -- -- (commandline -opc)
end
function __berth_command
    set -l words (commandline -opc) (commandline -ct)
    set -l at (contains -i -- -- $words)
    complete -C (string join ' ' -- $words[(math $at + 1)..-1])
end

complete -c berth -f
complete -c berth -n 'not __berth_verb' -l socket -r -F -d 'control socket of berthd'
complete -c berth -n 'not __berth_in_command' -l help -d 'print help'

set -l verbs run 'run a command while it holds permits' start 'start jobs' stop 'stop runs' jobs 'jobs that this host defines' \
    next 'when jobs begin' runs 'runs of this host' explain 'why a run waits' pools 'pools, their holders and queues' hosts 'live hosts of the namespace' redis 'which Redis, and what is risky about it' metrics 'metrics of berthd, for Prometheus' \
    watch 'events of this host as they happen' limit 'show or set a limit' \
    pause 'set a limit of 0' resume 'end a pause' move 'move a waiting run in its queues' steal 'stop a run so that another one gets its permits' revoke 'have a run stopped by its host' grace 'end the grace period of a new namespace' \
    drain 'start no more runs on this host' undrain 'start runs on this host again' \
    reload 'bring a changed config into force' logs 'output of a job or a run' history 'past runs, from the journal' \
    audit 'prove from journals that the limits were kept' doctor 'check this host and the cluster' import-crontab 'print crontabs as a config' check-config 'print all errors of a config' version 'print the versions' \
    help 'show the options of a verb'
while set -q verbs[1]
    complete -c berth -n 'not __berth_verb; or __berth_is help' -a $verbs[1] -d $verbs[2]
    set -e verbs[1..2]
end

set -l run '__berth_is run; and not __berth_in_command'
complete -c berth -n $run -s p -x -a '(__berth_keys)' -d 'pool and permits'
complete -c berth -n $run -s n -d 'do not wait'
complete -c berth -n $run -l wait -x -a '10s 1m 10m 1h' -d 'longest wait'
complete -c berth -n $run -l timeout -x -a '10s 1m 10m 1h' -d 'stop the command after this time'
complete -c berth -n $run -l head-start -x -a '10s 1m 10m 1h' -d 'queue as if it had waited this long'
complete -c berth -n $run -l name -x -d label
complete -c berth -n $run -l on-lease-lost -x -a 'stop continue' -d 'if the lease is lost'
complete -c berth -n $run -l stop-timeout -x -a '10s 1m' -d 'time from stop signal to kill'
complete -c berth -n $run -s E -x -d 'exit status if there is no permit'
complete -c berth -n $run -s v -d 'report waits and grants'
complete -c berth -n __berth_in_command -a '(__berth_command)'

complete -c berth -n '__berth_is jobs next runs explain pools hosts redis watch' -l json -d 'one JSON document'
complete -c berth -n '__berth_is next' -s e -x -d 'entry of a schedule'
complete -c berth -n '__berth_is next' -s z -x -d 'time zone'
complete -c berth -n '__berth_is next' -l except -x -d 'except these times'
complete -c berth -n '__berth_is next' -l count -x -d 'number of times'
complete -c berth -n '__berth_is next' -l from -x -a 'now tomorrow +1h +7d' -d 'begin after this time'
complete -c berth -n '__berth_is runs' -l all -d 'also finished runs'
complete -c berth -n '__berth_is runs' -l cluster -d 'runs of all hosts'
complete -c berth -n '__berth_is start stop' -a '(__berth_live name jobs)' -d job
complete -c berth -n '__berth_is start' -l wait -d 'wait until it is over'
complete -c berth -n '__berth_is start' -l set -x -d 'NAME=VALUE of a parameter'
complete -c berth -n '__berth_is stop runs explain history' -a '(__berth_live run runs)' -d run
complete -c berth -n '__berth_is jobs next runs explain history' -a '(__berth_live name jobs)' -d job
complete -c berth -n '__berth_is stop jobs runs history' -a '(__berth_live instance_of jobs)' -d template
complete -c berth -n '__berth_is pools limit pause resume' -a '(__berth_live name pools)' -d pool
complete -c berth -n '__berth_is limit pause' -l for -x -a '10m 1h 1d' -d 'end after this time'
complete -c berth -n '__berth_is limit pause move steal revoke' -l reason -x -d reason
complete -c berth -n '__berth_is limit' -l clear -d 'back to the limit of the configs'
complete -c berth -n '__berth_is move' -l first -d 'to the front'
complete -c berth -n '__berth_is move' -l before -x -a '(__berth_live claim pools)' -d 'to the place before this one'
complete -c berth -n '__berth_is move' -l by -x -a '1m 10m 1h -10m' -d 'head start to add'
complete -c berth -n '__berth_is steal' -l for -x -a '(__berth_live claim pools)' -d 'run that gets the permits'
complete -c berth -n '__berth_is steal' -l yes -d 'do not ask'
complete -c berth -n '__berth_is move steal revoke' -a '(__berth_live claim pools)' -d claim
complete -c berth -n '__berth_is grace' -l end -d 'end the grace period'
complete -c berth -n '__berth_is stop' -l wait -d 'wait until the runs are over'
complete -c berth -n '__berth_is drain' -l wait -d 'wait until the last run is over'
complete -c berth -n '__berth_is check-config import-crontab' -F
complete -c berth -n '__berth_is import-crontab' -l system -d 'sixth field is the user'
complete -c berth -n '__berth_is import-crontab' -l user -x -a '(__fish_complete_users)' -d 'user of all lines'
complete -c berth -n '__berth_is import-crontab' -l prefix -x -d 'begin of the job names'
complete -c berth -n '__berth_is logs history' -l utc -d 'times in UTC'
complete -c berth -n '__berth_is history' -l pool -x -a '(__berth_keys)' -d 'only this pool'
complete -c berth -n '__berth_is logs history audit' -l since -x -a 'today yesterday -1h -7d' -d 'begin at this time'
complete -c berth -n '__berth_is history' -l stats -d 'statistics of ended runs'
complete -c berth -n '__berth_is history' -l use -d 'use of each pool'
complete -c berth -n '__berth_is history' -l step -x -a '5m 1h 1d' -d 'time for each bar'
complete -c berth -n '__berth_is explain' -l no-estimate -d 'without an estimate of the start'
complete -c berth -n '__berth_is history' -l by -x -a 'job pool host' -d 'a line for each'
complete -c berth -n '__berth_is history' -l until -x -a 'today now -1h' -d 'end at this time'
complete -c berth -n '__berth_is logs history audit' -l directory -x -a '(__fish_complete_directories)' -d 'journal files in this directory'
complete -c berth -n '__berth_is logs history audit' -s m -d 'all collected journals'
complete -c berth -n '__berth_is logs history audit' -l unit -x -d 'unit of berthd'
complete -c berth -n '__berth_is move history audit' -l json -d 'one JSON document'
complete -c berth -n '__berth_is audit' -l limit -x -d 'POOL=N instead of the limit in the journals'
complete -c berth -n '__berth_is audit' -s c -r -F -d 'config with limits that no journal has'
complete -c berth -n '__berth_is audit' -l no-moves -d 'a move is a violation'
complete -c berth -n '__berth_is audit' -l tolerance -x -d 'allowed difference of clocks'
complete -c berth -n '__berth_is logs' -a '(__berth_live name jobs)' -d job
complete -c berth -n '__berth_is logs' -a '(__berth_live run runs)' -d run
complete -c berth -n '__berth_is logs' -s f -d follow
complete -c berth -n '__berth_is logs' -l events -d 'what berthd did'
complete -c berth -n '__berth_is logs' -s n -x -a '10 100 1000' -d 'last lines'
complete -c berth -n '__berth_is metrics' -l cluster -d 'also pools and hosts of the cluster'
complete -c berth -n '__berth_is metrics' -l format -x -a 'prometheus openmetrics' -d 'format of the text'
complete -c berth -n '__berth_is metrics' -l output -r -F -d 'replace this file'
complete -c berth -n '__berth_is doctor' -l json -d 'one JSON document'
complete -c berth -n '__berth_is doctor' -l nagios -d 'output for Nagios'
complete -c berth -n '__berth_is doctor' -l list -d 'list all checks'
complete -c berth -n '__berth_is doctor' -l only -x -a '(berth doctor --list 2>/dev/null | string replace -r " .*" "")' -d 'only these checks'
complete -c berth -n '__berth_is doctor' -l skip -x -a '(berth doctor --list 2>/dev/null | string replace -r " .*" "")' -d 'not these checks'
complete -c berth -n '__berth_is doctor check-config' -s c -r -F -d 'config of berthd'
complete -c berth -n '__berth_is watch' -l events -x -a 'queued granted started exited released withdrawn refused seen-held seen-freed seen-waiting seen-gone seen-limit seen-host seen-host-gone' -d 'only events of these names'
complete -c berth -n '__berth_is watch' -l pool -x -a '(__berth_live name pools)' -d 'only this pool'
complete -c berth -n '__berth_is watch' -l job -x -a '(__berth_live name jobs)' -d 'only this job'
complete -c berth -n '__berth_is watch' -l cluster -d 'also what pictures of the cluster show'
complete -c berth -n '__berth_is watch' -l since -x -d 'begin after this event'
complete -c berth -n '__berth_is watch' -s n -x -d 'end after this number of events'
complete -c berth -n '__berth_is watch' -l timeout -x -a '10s 1m 10m 1h' -d 'end after this time'
complete -c berth -n '__berth_is redis' -l accept -d 'accept another namespace'
