# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# The Redis and the Valkey of Debian 13, behind three sentinels and as a cluster. A job outlives a
# failover, and the move of the slot of its namespace. Then the new master grants permits.

boot ant trixie
boot redis trixie
up ant
await_boot redis
redis_installed redis

# For each server: ports from 7000 on, three nodes, three sentinels beside them.
for server in redis valkey; do
    script redis <<END
        mkdir -p /tmp/$server
        cd /tmp/$server
        for n in 0 1 2; do
            mkdir -p node\$n sentinel\$n plain\$n
            $server-server --port 700\$n --dir /tmp/$server/plain\$n --save '' --daemonize yes --protected-mode no \
                \$([ \$n -eq 0 ] || echo --replicaof redis 7000) --replica-announce-ip \$(getent hosts redis | cut -d' ' -f1)
            $server-server --port 710\$n --dir /tmp/$server/node\$n --save '' --daemonize yes --protected-mode no \
                --cluster-enabled yes --cluster-node-timeout 2000
        done
        for n in 0 1 2; do
            cat >sentinel\$n/conf <<CONF
sentinel resolve-hostnames yes
sentinel monitor fleet \$(getent hosts redis | cut -d' ' -f1) 7000 2
sentinel down-after-milliseconds fleet 1000
sentinel failover-timeout fleet 5000
CONF
            $server-server sentinel\$n/conf --sentinel --port 720\$n --daemonize yes --protected-mode no
        done
        address=\$(getent hosts redis | cut -d' ' -f1)
        $server-cli --cluster create \$address:7100 \$address:7101 \$address:7102 --cluster-yes >create.log || fail "\$(cat create.log)"
        for n in 0 1 2; do
            await sh -c "$server-cli -p 720\$n sentinel master fleet | tr '\n' ' ' | grep -q 'num-slaves 2 num-other-sentinels 2'"
        done
END
    for place in sentinels cluster; do
        script ant <<END
            case $place in
                sentinels) options='url = "redis:///0"
                    sentinels = {"redis:7200", "redis:7201", "redis:7202"}
                    master = "fleet"' ;;
                cluster) options='url = "redis://redis:7100,redis:7101"' ;;
            esac
            cat >/etc/berth/berth.conf.d/cluster.conf <<CONF
namespace = "$server-$place"
lease = "20s"
redis {
    \$options
    failover-margin = "1s"
}
pool "db" { limit = 1 }
job "long" { command = {"/bin/sh", "-c", "read x </run/go"} pools = {"db"} }
CONF
            rm -f /run/go && mkfifo -m 666 /run/go
            systemctl restart berthd.service
            await sh -c 'berth redis --json | grep -q "\"state\": *\"connected\""'
            await berth grace --end
            berth start long
            await sh -c 'berth pools --json db | tr -d " \n" | grep -q "\"used\":1"'
END
        script redis <<END
            case $place in
                sentinels)
                    $server-cli -p 7200 sentinel failover fleet
                    await sh -c "! $server-cli -p 7200 sentinel get-master-addr-by-name fleet | grep -q 7000" ;;
                cluster)
                    slot=\$($server-cli -p 7100 cluster keyslot 'berth:{$server-cluster}:meta')
                    for n in 0 1 2; do
                        [ "\$($server-cli -p 710\$n cluster countkeysinslot \$slot)" -eq 0 ] || from=\$n
                    done
                    to=\$(((from + 1) % 3))
                    source=\$($server-cli -p 710\$from cluster myid) target=\$($server-cli -p 710\$to cluster myid)
                    $server-cli -p 710\$to cluster setslot \$slot importing \$source
                    $server-cli -p 710\$from cluster setslot \$slot migrating \$target
                    for key in \$($server-cli -p 710\$from cluster getkeysinslot \$slot 100); do
                        $server-cli -p 710\$from migrate 127.0.0.1 710\$to "\$key" 0 5000 >/dev/null
                    done
                    for n in \$to \$from 0 1 2; do $server-cli -p 710\$n cluster setslot \$slot node \$target; done ;;
            esac
END
        script ant <<END
            await sh -c 'journalctl -q -t berthd BERTH_EVENT=redis-moved -o cat | grep -q .'
            await sh -c 'berth redis --json | grep -q "\"state\": *\"connected\""'
            await berth grace --end
            [ "\$(used db)" = 1 ] || fail "the run is gone"
            echo go >/run/go
            berth run -p db -- true
            journalctl -q -t berthd BERTH_EVENT=exited BERTH_JOB=long -o cat | tail -n 1 | grep -q succeeded || fail "\$(journalctl -q -t berthd -o cat | tail -n 20)"
            not sh -c 'journalctl -q -t berthd BERTH_EVENT=fenced -o cat | grep .'
            journalctl --rotate --vacuum-time=1s -q
END
    done
    script redis <<END
        pkill -x $server-server || :
        while pgrep -x $server-server >/dev/null; do read -rt 0.1 <> <(:) || :; done
END
done
