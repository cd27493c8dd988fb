#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# Sends messages to runner.sock as berthd does: speak.pl PATH 'start run=... job=...' ...
# Sends hello, then each message. Prints each reply as one line, with spaces for line ends, or "closed".
use strict;
use warnings;
use Socket;

my ($path, @messages) = @ARGV;
socket(my $s, AF_UNIX, SOCK_SEQPACKET, 0) or die "socket: $!\n";
connect($s, sockaddr_un($path)) or die "connect: $!\n";

# Returns one message, or "closed". Ends the program after five seconds without a reply.
sub answer {
    my $in = '';
    vec($in, fileno($s), 1) = 1;
    select($in, undef, undef, 5) > 0 or die "no answer\n";
    my $got = recv($s, my $text, 8192, 0);
    return 'closed' if !defined $got || $text eq '';
    $text =~ s/\n/ /g;
    return $text;
}
sub say_it {
    (my $text = $_[0]) =~ s/ /\n/g;
    send($s, "$text\n", MSG_NOSIGNAL);
}

$| = 1;
say_it('hello version=1');
my $a;
do { $a = answer(); print "$a\n"; exit 0 if $a eq 'closed' } until $a =~ /^recovered/;
for my $m (@messages) {
    say_it($m);
    $a = answer();
    print "$a\n";
    exit 0 if $a eq 'closed';
}
