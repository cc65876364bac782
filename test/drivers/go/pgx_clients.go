// SPDX-License-Identifier: PostgreSQL
// pgx_clients: pgx in its ordinary use, many clients at once: its statement cache, transactions with savepoints,
// batches, COPY, cursors by row limit, each way of executing. Usage: pgx_clients HOST PORT CLIENTS
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var modes = []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"}

func expect(ok bool, what string, args ...any) {
	if !ok {
		panic(fmt.Sprintf(what, args...))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func transactions(ctx context.Context, conn *pgx.Conn, i int) {
	for n := 0; n < 10; n++ {
		tx, err := conn.Begin(ctx)
		must(err)
		_, err = tx.Exec(ctx, "insert into drv_pgx values ($1, $2)", i, n)
		must(err)
		inner, err := tx.Begin(ctx)
		must(err)
		_, err = inner.Exec(ctx, "insert into drv_pgx values ($1, $2)", i, n)
		pgErr, ok := err.(*pgconn.PgError)
		expect(ok && pgErr.Code == "23505", "client %d: %v", i, err)
		must(inner.Rollback(ctx))
		if n%2 == 0 {
			must(tx.Commit(ctx))
		} else {
			must(tx.Rollback(ctx))
		}
		var count int
		must(conn.QueryRow(ctx, "select count(*) from drv_pgx where client = $1", i).Scan(&count))
		expect(count == n/2+1, "client %d: %d rows after %d", i, count, n)
	}
}

func batches(ctx context.Context, conn *pgx.Conn, i int) {
	batch := &pgx.Batch{}
	for n := 0; n < 30; n++ {
		batch.Queue("select $1::int + $2::int", i, n)
	}
	results := conn.SendBatch(ctx, batch)
	for n := 0; n < 30; n++ {
		var sum int
		must(results.QueryRow().Scan(&sum))
		expect(sum == i+n, "client %d: %d", i, sum)
	}
	must(results.Close())
	rows := [][]any{}
	for n := 100; n < 150; n++ {
		rows = append(rows, []any{i, n})
	}
	count, err := conn.CopyFrom(ctx, pgx.Identifier{"drv_pgx"}, []string{"client", "n"}, pgx.CopyFromRows(rows))
	must(err)
	expect(count == 50, "client %d copied %d", i, count)
}

func client(host string, port string, i int) {
	ctx, done := context.WithTimeout(context.Background(), 60*time.Second)
	defer done()
	conn, err := pgx.Connect(ctx, fmt.Sprintf("host=%s port=%s user=postgres dbname=postgres application_name=client_%d "+
		"default_query_exec_mode=%s statement_cache_capacity=%d description_cache_capacity=5", host, port, i, modes[i%len(modes)], 4+i%8))
	must(err)
	defer conn.Close(ctx)
	transactions(ctx, conn, i)
	if modes[i%len(modes)] != "simple_protocol" {
		batches(ctx, conn, i)
		more(ctx, conn, i)
	}
	_, err = conn.Exec(ctx, "select 1/0")
	expect(err != nil, "client %d: no error", i)
	var name string
	must(conn.QueryRow(ctx, "show application_name").Scan(&name))
	expect(name == fmt.Sprintf("client_%d", i), "client %d is %s", i, name)
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if i == 0 {
		_, err = conn.Exec(short, "select pg_sleep(30)")
		expect(err != nil, "the deadline did not end it")
	}
	deadlines(ctx, host, port, i)
}

func main() {
	host, port := os.Args[1], os.Args[2]
	var clients int
	_, err := fmt.Sscan(os.Args[3], &clients)
	must(err)
	ctx, done := context.WithTimeout(context.Background(), 90*time.Second)
	defer done()
	text := fmt.Sprintf("host=%s port=%s user=postgres dbname=postgres", host, port)
	prepareMore(ctx, text)
	var wait sync.WaitGroup
	for i := 0; i < clients; i++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			client(host, port, i)
		}()
	}
	wait.Wait()
	notifications(ctx, text)
	ownPools(ctx, text)
	fmt.Println("ok", clients)
}
