# SPDX-License-Identifier: MIT
# Parts of tests/mutate.sh that look at text:
#   perl tests/mutations.pl apply FILE     replaces $OLD by $NEW there; exits with 1 unless $OLD occurs exactly once
#   perl tests/mutations.pl check WORD...  checks that the mutations whose name contains a word, or whose list is called so (all if
#                                          there is none), apply, and that their tests are there; prints a line for each that is
#                                          wrong, and exits with 1
use strict;
use warnings;
use File::Find;

# Returns place and length of each occurrence. White space matches any other white space.
sub places {
    my ($text, $old) = @_;
    my $pattern = join "\\s+", map { quotemeta } split " ", $old;
    my @places;
    return () if $pattern eq "";
    push @places, [$-[0], $+[0] - $-[0]] while $$text =~ /$pattern/g;
    return @places;
}

sub slurp {
    my ($path) = @_;
    open my $f, "<", $path or return undef;
    local $/;
    return scalar <$f>;
}

sub apply {
    my ($path) = @_;
    my $text = slurp($path);
    my @places = defined $text ? places(\$text, $ENV{OLD}) : ();
    return 1 if @places != 1;
    substr($text, $places[0][0], $places[0][1]) = $ENV{NEW};
    open my $f, ">", $path or return 1;
    print $f $text;
    return close($f) ? 0 : 1;
}

sub read_lists {
    my @mutations;
    for my $list (sort glob "tests/mutations/*.txt") {
        my ($name) = $list =~ m|([^/]*)$|;
        for (split /\n/, slurp($list)) {
            if    (/^== (.*)/)    { push @mutations, {name => $1, list => $name, file => "", tests => [], old => ""} }
            elsif (/^file (.*)/)  { $mutations[-1]{file} = $1 }
            elsif (/^tests (.*)/) { $mutations[-1]{tests} = [split " ", $1] }
            elsif (/^- (.*)/)     { $mutations[-1]{old} .= "$1\n" }
        }
    }
    return @mutations;
}

sub check {
    my @words = @_ ? @_ : ("");
    my (%sources, %texts, $bad);
    # Some programs have the tests of a suite that several share.
    my $suites = join "", map { slurp($_) } glob "tests/harness/{,*/}*-suite*.c";
    find(sub { $sources{$1} = $File::Find::name if /^(test-.*)\.c$/ }, "tests");
    for my $m (read_lists()) {
        next unless grep { index($m->{name}, $_) >= 0 || $m->{list} eq $_ } @words;
        my $text = $texts{$m->{file}} //= slurp($m->{file}) // "";
        if (places(\$text, $m->{old}) != 1) {
            print "mutations: $m->{name}: does not apply to $m->{file}\n";
            $bad = 1;
        }
        for my $test (@{$m->{tests}}) {
            my ($program, $word) = split /:/, $test, 2;
            my $source = $sources{$program} ? $texts{$program} //= slurp($sources{$program}) . $suites : "";
            next if defined $word ? $source =~ /\{"[^"]*$word/ : $source ne "";
            print "mutations: $m->{name}: there is no $test\n";
            $bad = 1;
        }
    }
    return $bad ? 1 : 0;
}

my $what = shift // "";
exit($what eq "apply" ? apply(@ARGV) : $what eq "check" ? check(@ARGV) : 2);
