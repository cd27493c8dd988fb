# SPDX-License-Identifier: MIT
# Draws what berth-bench measured; run in the folder of its .dat files.

exists_file(f) = (system("test -s " . f . " && echo 1 || echo 0") + 0)

set grid lc rgb "#dddddd"
set key left top
set style line 1 lc rgb "#0b6e4f" lw 3 pt 7 ps 0.8
set style line 2 lc rgb "#c1121f" lw 2 pt 5 ps 0.7
set style line 3 lc rgb "#e09f3e" lw 2 pt 9 ps 0.8
set style line 4 lc rgb "#6c757d" lw 2 pt 11 ps 0.8

do for [format in "svg png"] {
    if (format eq "svg") { set terminal svg size 800,480 font "sans,13" background "white" }
    if (format eq "png") { set terminal png size 800,480 font "sans,11" background "#ffffff" }

    if (exists_file("cost-ours.dat") && exists_file("cost-seed-fair.dat")) {
        set output "cost-over-holders." . format
        set title "Server time of one acquire and its release"
        set xlabel "permits held in the pool"
        set ylabel "µs in Redis"
        set logscale xy
        set format x "10^{%L}"
        set yrange [0.5:*]
        plot "cost-ours.dat" w lp ls 1 t "berth", \
             "cost-seed-basic.dat" w lp ls 3 t "sorted set by time (6.3.1)", \
             "cost-seed-fair.dat" w lp ls 2 t "fair, by counter (6.3.2)", \
             "cost-seed-fair-script.dat" w lp ls 4 t "the same as one script"
        unset logscale
        set format x
        set autoscale y
    }

    if (exists_file("handover-lock.dat")) {
        set output "handover." . format
        set title "From a release to the next one: share that took at most this long"
        set xlabel "µs"
        set ylabel "share"
        set logscale x
        set yrange [0:1]
        set key right bottom
        plot "handover-lock.dat" w l ls 1 t "berth: granted on the next host", \
             "handover-command.dat" w l ls 3 t "berth: the next command runs", \
             "handover-daemons.dat" w l ls 4 t "berth run on 10 hosts: command to command", \
             "handover-redis-semaphore.dat" w l ls 2 t "redis-semaphore, polling: lock alone"
        unset logscale
        set autoscale y
        set key left top
    }

    do for [when in "idle busy"] {
        suffix = when eq "busy" ? "-busy" : ""
        if (exists_file("turns-flock" . suffix . ".dat")) {
            set output "flock" . suffix . "." . format
            set title "From a command's end to the next one's begin" . (when eq "busy" ? ", busy machine" : "") . \
                      ": share that took at most this long"
            set xlabel "µs"
            set ylabel "share"
            set logscale x
            set yrange [0:1]
            set key right bottom
            plot "turns-flock" . suffix . ".dat" w l ls 4 t "flock", \
                 "turns-cluster" . suffix . ".dat" w l ls 1 t "berth run over two hosts", \
                 "turns-host" . suffix . ".dat" w l ls 3 t "berth run, host pool", \
                 "turns-jobs" . suffix . ".dat" w l ls 2 t "jobs over two hosts"
            unset logscale
            set autoscale y
            set key left top
        }
    }

    if (exists_file("hops-cluster.dat") && exists_file("hops-cluster-busy.dat")) {
        system("for f in cluster host jobs cluster-busy host-busy; do awk '{ printf \"%s \", $2 } END { print \"\" }' hops-$f.dat; done >hops.dat")
        set output "hops." . format
        set title "From a command's end to the next one's first instant: median of each hop"
        array hop[8] = ["its watcher notices the end", "its report comes to berthd", "berthd logs it, and sends the release", \
                        "Redis, and on to the berthd that is granted", "berthd logs and notes the grant", \
                        "the next watcher has the grant", "through the gate", "exec, until the first instruction"]
        set style data histograms
        set style histogram rowstacked
        set style fill solid 0.8 border rgb "white"
        set boxwidth 0.7
        set xlabel ""
        set ylabel "µs"
        set xtics ("two hosts" 0, "host pool" 1, "jobs" 2, "hosts, busy" 3, "pool, busy" 4)
        set yrange [0:*]
        set key outside below
        plot for [i = 1:8] "hops.dat" using i title hop[i]
        set style data points
        set style fill empty
        set xtics auto
        set autoscale y
        set key inside left top
    }

    if (exists_file("load-hosts.dat")) {
        set output "load-over-hosts." . format
        set title "Heartbeats with ten jobs a host and a lease of 30 s"
        set xlabel "hosts"
        set ylabel "% of Redis's core"
        set logscale xy
        plot "load-hosts.dat" w lp ls 1 t "scripts", \
             "load-hosts-cpu.dat" w lp ls 4 t "all of Redis's CPU time"
        unset logscale
    }
}
