<?php
// SPDX-License-Identifier: PostgreSQL
// pdo_clients.php HOST PORT CLIENTS: PDO in its ordinary use, a process per client: prepared statements (pdo_stmt_00000001
// in every client), emulated ones, transactions with savepoints, COPY, cursors, errors. Prints "ok CLIENTS" at the end.

[$host, $port, $clients] = array_slice($argv, 1);

function check(string $what, mixed $got, mixed $wanted): void
{
    if ($got != $wanted) {
        throw new Exception("$what: " . var_export($got, true) . ", not " . var_export($wanted, true));
    }
}

function state_of(callable $work): string
{
    try {
        $work();
    } catch (PDOException $e) {
        return (string) $e->getCode();
    }
    return "none";
}

function transactions(PDO $db, int $client): void
{
    $put = $db->prepare("insert into drv_pdo values (?, ?)");
    $count = $db->prepare("select count(*) from drv_pdo where client = :client");
    for ($n = 0; $n < 10; $n++) {
        $db->beginTransaction();
        $put->execute([$client, $n]);
        $db->exec("savepoint a");
        check("doubled", state_of(fn() => $put->execute([$client, $n])), "23505");
        $db->exec("rollback to a");
        $n % 2 ? $db->rollBack() : $db->commit();
        $count->execute(["client" => $client]);
        check("rows", $count->fetchColumn(), intdiv($n, 2) + 1);
        $other = $db->prepare("select ?::int + $n");  // made and freed each time
        $other->execute([$client]);
        check("sum", $other->fetchColumn(), $client + $n);
    }
}

function rest(PDO $db, int $client): void
{
    $db->pgsqlCopyFromArray("drv_pdo", array_map(fn($n) => "$client\t$n", range(100, 149)));
    $db->beginTransaction();
    $cursor = $db->prepare("select g from generate_series(1, 25) g", [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL]);
    $cursor->execute();
    $sum = 0;
    while (($g = $cursor->fetchColumn()) !== false) {
        $sum += $g;
    }
    check("cursor", $sum, 325);
    $db->commit();
    check("an error", state_of(fn() => $db->query("select 1/0")), "22012");
    $db->exec("set work_mem = '" . (5000 + $client) . "kB'");
    for ($n = 0; $n < 5; $n++) {
        check("work_mem", $db->query("show work_mem")->fetchColumn(), (5000 + $client) . "kB");
        check("application_name", $db->query("show application_name")->fetchColumn(), "pdo $client");
    }
}

$failed = 0;
for ($client = 1; $client <= $clients; $client++) {
    if (pcntl_fork() === 0) {
        $db = new PDO("pgsql:host=$host;port=$port;dbname=postgres;application_name='pdo $client'", "postgres", "x", [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION, PDO::ATTR_EMULATE_PREPARES => $client % 3 === 0,
            PDO::PGSQL_ATTR_DISABLE_PREPARES => $client % 3 === 1]);
        transactions($db, $client);
        rest($db, $client);
        exit(0);
    }
}
while (pcntl_wait($status) > 0) {
    $failed += $status !== 0;
}
if ($failed) {
    fwrite(STDERR, "$failed clients failed\n");
    exit(1);
}
echo "ok $clients\n";
