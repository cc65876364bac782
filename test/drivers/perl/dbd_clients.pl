#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# dbd_clients.pl HOST PORT CLIENTS: DBD::Pg in its ordinary use, a process per client: its prepared statements, made late
# and freed by DEALLOCATE, transactions with savepoints, COPY, asynchronous queries, errors. Prints "ok CLIENTS" at the end.
use strict;
use warnings;
use DBI;
use DBD::Pg qw(:async);

my ($host, $port, $clients) = @ARGV;

sub check {
    my ($what, $got, $wanted) = @_;
    die "$what: $got, not $wanted\n" unless $got eq $wanted;
}

sub transactions {
    my ($db, $client) = @_;
    my $put = $db->prepare("insert into drv_dbd values (?, ?)");
    my $count = $db->prepare("select count(*) from drv_dbd where client = ?");
    for my $n (0 .. 9) {
        $db->begin_work;
        $put->execute($client, $n);
        $db->pg_savepoint("a");
        check("doubled", eval { $put->execute($client, $n); 1 } ? "taken" : $db->state, "23505");
        $db->pg_rollback_to("a");
        $n % 2 ? $db->rollback : $db->commit;
        $count->execute($client);
        check("rows", ($count->fetchrow_array)[0], int($n / 2) + 1);
    }
    undef $put;    # DEALLOCATE: of a name that other clients have, too
    check("after it", ($db->selectrow_array($count, undef, $client))[0], 5);
}

sub rest {
    my ($db, $client) = @_;
    $db->do("copy drv_dbd from stdin");
    $db->pg_putcopydata("$client\t$_\n") for 100 .. 149;
    $db->pg_putcopyend;
    check("server side", join(",", @{ $db->selectcol_arrayref("select g * ?::int from generate_series(1, 3) g", undef, $client) }),
        join(",", map { $_ * $client } 1 .. 3));
    my $waits = $db->prepare("select ?::int + 1", { pg_async => PG_ASYNC });
    $waits->execute($client);
    $db->pg_result;
    check("asynchronous", ($waits->fetchrow_array)[0], $client + 1);
    check("an error", eval { $db->do("select 1/0"); 1 } ? "none" : $db->state, "22012");
    $db->do("set work_mem = '" . (5000 + $client) . "kB'");
    for (1 .. 5) {
        check("work_mem", ($db->selectrow_array("show work_mem"))[0], (5000 + $client) . "kB");
        check("application_name", ($db->selectrow_array("show application_name"))[0], "dbd_$client");
    }
    check("ping", $db->ping > 0 ? 1 : 0, 1);
    check("columns", $db->column_info(undef, "public", "drv_dbd", "%")->fetchall_arrayref->[0][3], "client");
}

my @children;
for my $client (1 .. $clients) {
    my $pid = fork // die "fork: $!";
    if ($pid == 0) {
        my $db = DBI->connect("dbi:Pg:host=$host;port=$port;dbname=postgres;application_name=dbd_$client", "postgres", "x",
            { RaiseError => 1, PrintError => 0, AutoCommit => 1, pg_switch_prepared => $client % 3 });
        transactions($db, $client);
        rest($db, $client);
        $db->disconnect;
        exit 0;
    }
    push @children, $pid;
}
my $failed = 0;
for (@children) {
    waitpid($_, 0);
    $failed++ if $? != 0;
}
die "$failed clients failed\n" if $failed;
print "ok $clients\n";
