# SPDX-License-Identifier: MIT
complete -c berth-web -f
complete -c berth-web -l listen -x -a 127.0.0.1:9737 -d 'listen here'
complete -c berth-web -l unix -r -F -d 'listen on this unix socket'
complete -c berth-web -l berth -r -F -d 'ask this berthd'
complete -c berth-web -l host -x -d 'a name of this server'
complete -c berth-web -l path -x -d 'serve below this path'
complete -c berth-web -l title -x -d 'name of the cluster on the page'
complete -c berth-web -l actions -d 'let users act'
complete -c berth-web -l user-header -x -d 'the header in which the proxy names the user'
complete -c berth-web -l metrics-only -d 'serve /metrics and /healthz alone'
complete -c berth-web -l version -d 'print the version'
complete -c berth-web -l help -d 'print this'
