// SPDX-License-Identifier: PostgreSQL
// pgx_more: what pgx does that others do not: pipelines by hand, batches that fail, COPY to the client, large objects,
// types it looks up, a full statement cache, tables that change under it, deadlines as cancel requests, its own pools.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
)

func code(err error) string {
	if err == nil {
		return "none"
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return err.Error()
}

func failed(err error, want string, what string, i int) {
	expect(code(err) == want, "client %d, %s: %s", i, what, code(err))
}

// pipelines: each Sync is a transaction of its own; an error skips what is in front of the next one.
func pipelines(ctx context.Context, conn *pgx.Conn, i int) {
	p := conn.PgConn().StartPipeline(ctx)
	p.SendPrepare("drv_add", "select $1::int + $2::int", nil)
	p.SendQueryPrepared("drv_add", [][]byte{[]byte(fmt.Sprint(i)), []byte("5")}, nil, nil)
	must(p.Sync())
	p.SendQueryParams("select 1 / $1::int", [][]byte{[]byte("0")}, nil, nil, nil)
	p.SendQueryPrepared("drv_add", [][]byte{[]byte("1"), []byte("1")}, nil, nil)
	must(p.Sync())
	p.SendQueryPrepared("drv_add", [][]byte{[]byte("2"), []byte(fmt.Sprint(i))}, nil, nil)
	p.SendDeallocate("drv_add")
	must(p.Sync())
	told := []string{}
	for syncs := 0; syncs < 3; {
		got, err := p.GetResults()
		switch it := got.(type) {
		case *pgconn.PipelineSync:
			syncs++
			told = append(told, "sync")
		case *pgconn.ResultReader:
			read := it.Read()
			if read.Err != nil {
				told = append(told, code(read.Err))
			} else {
				told = append(told, string(read.Rows[0][0]))
			}
		case *pgconn.StatementDescription:
			told = append(told, "prepared")
		case *pgconn.CloseComplete:
			told = append(told, "closed")
		default:
			told = append(told, code(err))
		}
	}
	must(p.Close())
	want := fmt.Sprintf("prepared %d sync 22012 sync %d closed sync", i+5, i+2)
	expect(strings.Join(told, " ") == want, "client %d, pipeline: %v", i, told)
}

func count(ctx context.Context, conn *pgx.Conn, i int) int {
	var rows int
	must(conn.QueryRow(ctx, "select count(*) from drv_pgx where client = $1", i).Scan(&rows))
	return rows
}

// A batch is a transaction; within one, it fails that.
func batchesThatFail(ctx context.Context, conn *pgx.Conn, i int) {
	before := count(ctx, conn, i)
	broken := func() *pgx.Batch {
		batch := &pgx.Batch{}
		batch.Queue("insert into drv_pgx values ($1, $2)", i, 700)
		batch.Queue("insert into drv_pgx values ($1, $2)", i, 700)
		batch.Queue("insert into drv_pgx values ($1, $2)", i, 701)
		return batch
	}
	failed(conn.SendBatch(ctx, broken()).Close(), "23505", "a batch", i)
	tx, err := conn.Begin(ctx)
	must(err)
	failed(tx.SendBatch(ctx, broken()).Close(), "23505", "a batch in a transaction", i)
	_, err = tx.Exec(ctx, "select $1::int", i)
	failed(err, "25P02", "behind it", i)
	must(tx.Rollback(ctx))
	expect(count(ctx, conn, i) == before, "client %d: a failed batch left rows", i)
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"drv_pgx"}, []string{"client", "n"}, pgx.CopyFromRows([][]any{{i, 702}, {i, 702}}))
	failed(err, "23505", "COPY", i)
	var out bytes.Buffer
	_, err = conn.PgConn().CopyTo(ctx, &out, fmt.Sprintf("copy (select g * %d from generate_series(1, 3) g) to stdout", i))
	must(err)
	expect(out.String() == fmt.Sprintf("%d\n%d\n%d\n", i, 2*i, 3*i), "client %d copied out %q", i, out.String())
}

func largeObjects(ctx context.Context, conn *pgx.Conn, i int) {
	tx, err := conn.Begin(ctx)
	must(err)
	objects := tx.LargeObjects()
	id, err := objects.Create(ctx, 0)
	must(err)
	object, err := objects.Open(ctx, id, pgx.LargeObjectModeWrite)
	must(err)
	_, err = object.Write(bytes.Repeat([]byte{byte(i)}, 5000))
	must(err)
	must(tx.Commit(ctx))
	tx, err = conn.Begin(ctx)
	must(err)
	objects = tx.LargeObjects()
	object, err = objects.Open(ctx, id, pgx.LargeObjectModeRead)
	must(err)
	got, err := io.ReadAll(object)
	must(err)
	expect(len(got) == 5000 && got[4999] == byte(i), "client %d: %d bytes of a large object", i, len(got))
	must(objects.Unlink(ctx, id))
	must(tx.Commit(ctx))
}

func kindsOfTransactions(ctx context.Context, conn *pgx.Conn, i int) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable, AccessMode: pgx.ReadOnly, DeferrableMode: pgx.Deferrable})
	must(err)
	var level string
	must(tx.QueryRow(ctx, "show transaction_isolation").Scan(&level))
	expect(level == "serializable", "client %d: %s", i, level)
	_, err = tx.Exec(ctx, "insert into drv_pgx values ($1, 800)", i)
	failed(err, "25006", "a write", i)
	must(tx.Rollback(ctx))
	must(conn.QueryRow(ctx, "show transaction_isolation").Scan(&level))
	expect(level == "read committed", "client %d: %s", i, level)
}

// More statements than the cache holds: it closes the oldest, in one write with what comes next.
func fullCache(ctx context.Context, conn *pgx.Conn, i int) {
	for round := 0; round < 3; round++ {
		for n := 0; n < 12; n++ {
			var got int
			must(conn.QueryRow(ctx, fmt.Sprintf("select $1::int * 100 + %d", n), i).Scan(&got))
			expect(got == i*100+n, "client %d: %d", i, got)
		}
	}
}

// A table changes under a cached statement: an error once at most, never rows of the old shape.
func changingTable(ctx context.Context, conn *pgx.Conn, i int) {
	table := fmt.Sprintf("drv_pgx_ddl_%d", i)
	run := func(text string) {
		_, err := conn.Exec(ctx, text)
		must(err)
	}
	run("drop table if exists " + table)
	run("create table " + table + " as select 1 as a")
	shape := func() (int, error) {
		rows, err := conn.Query(ctx, "select * from "+table)
		if err != nil {
			return 0, err
		}
		columns := 0
		for rows.Next() {
			values, err := rows.Values()
			must(err)
			columns = len(values)
		}
		return columns, rows.Err()
	}
	for columns := 1; columns < 4; columns++ {
		got, err := shape()
		if err != nil {
			failed(err, "0A000", "a changed table", i)
			got, err = shape()
			must(err)
		}
		expect(got == columns, "client %d: %d of %d columns", i, got, columns)
		run(fmt.Sprintf("alter table %s add column c%d int", table, columns))
	}
	changedInTransaction(ctx, conn, i, table)
	run("drop table " + table)
}

// There the error fails the transaction; the next one is right, and so is what is prepared anew in one.
func changedInTransaction(ctx context.Context, conn *pgx.Conn, i int, table string) {
	text := "select * from " + table + " as t"
	shape := func(tx pgx.Tx) (int, error) {
		rows, err := tx.Query(ctx, text)
		if err != nil {
			return 0, err
		}
		rows.Close()
		return len(rows.FieldDescriptions()), rows.Err()
	}
	for columns := 4; columns < 7; columns++ {
		for n := 0; n < 3; n++ {
			err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, "select 1")
				must(err)
				got, err := shape(tx)
				expect(err != nil || got == columns, "client %d: %d of %d columns in a transaction", i, got, columns)
				return err
			})
			if err != nil {
				if code(err) != "08P01" || modes[i%len(modes)] != "cache_describe" { // which counts the columns it knows
					failed(err, "0A000", "a changed table in a transaction", i)
				}
				expect(n == 0, "client %d: the error stays", i)
			}
		}
		_, err := conn.Exec(ctx, fmt.Sprintf("alter table %s add column c%d int", table, columns))
		must(err)
		if columns == 5 {
			text += " where true"
		}
	}
}

func lookedUpTypes(ctx context.Context, conn *pgx.Conn, i int) {
	mood, err := conn.LoadType(ctx, "drv_pgx_mood")
	must(err)
	conn.TypeMap().RegisterType(mood)
	moods, err := conn.LoadType(ctx, "_drv_pgx_mood")
	must(err)
	conn.TypeMap().RegisterType(moods)
	var got []string
	must(conn.QueryRow(ctx, "select array[$1::drv_pgx_mood, 'ok']", "sad").Scan(&got))
	expect(len(got) == 2 && got[0] == "sad", "client %d: %v", i, got)
}

// Deadlines as cancel requests, the connection kept: also of who waits for one of the server's. All clients at once.
func deadlines(ctx context.Context, host string, port string, i int) {
	conf, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%s user=postgres dbname=postgres", host, port))
	must(err)
	conf.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 30 * time.Second}
	}
	conn, err := pgx.ConnectConfig(ctx, conf)
	must(err)
	defer conn.Close(ctx)
	for n := 0; n < 3; n++ {
		short, cancel := context.WithTimeout(ctx, 60*time.Millisecond)
		_, err = conn.Exec(short, "select pg_sleep(20), $1::int", i)
		cancel()
		expect(err != nil, "client %d slept", i)
		expect(!conn.IsClosed(), "client %d lost its connection: %v", i, err)
		var got int
		must(conn.QueryRow(ctx, "select $1::int", i*10+n).Scan(&got))
		expect(got == i*10+n, "client %d: %d", i, got)
	}
}

func more(ctx context.Context, conn *pgx.Conn, i int) {
	pipelines(ctx, conn, i)
	batchesThatFail(ctx, conn, i)
	largeObjects(ctx, conn, i)
	kindsOfTransactions(ctx, conn, i)
	fullCache(ctx, conn, i)
	changingTable(ctx, conn, i)
	lookedUpTypes(ctx, conn, i)
}

func prepareMore(ctx context.Context, text string) {
	conn, err := pgx.Connect(ctx, text)
	must(err)
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "do $$ begin create type drv_pgx_mood as enum ('sad', 'ok'); exception when duplicate_object then null; end $$")
	must(err)
}

func notifications(ctx context.Context, text string) {
	listener, err := pgx.Connect(ctx, text)
	must(err)
	defer listener.Close(ctx)
	_, err = listener.Exec(ctx, "listen drv_pgx_told")
	must(err)
	other, err := pgx.Connect(ctx, text)
	must(err)
	defer other.Close(ctx)
	_, err = other.Exec(ctx, "select pg_notify('drv_pgx_told', $1)", "hello")
	must(err)
	told, err := listener.WaitForNotification(ctx)
	must(err)
	expect(told.Payload == "hello" && told.Channel == "drv_pgx_told", "told %v", told)
	_, err = listener.Exec(ctx, "unlisten *")
	must(err)
}

// Its pool, and database/sql's with statements that move between its connections.
func ownPools(ctx context.Context, text string) {
	pool, err := pgxpool.New(ctx, text+" pool_max_conns=8")
	must(err)
	defer pool.Close()
	db, err := sql.Open("pgx", text)
	must(err)
	defer db.Close()
	db.SetMaxOpenConns(8)
	statement, err := db.PrepareContext(ctx, "select $1::int * 2")
	must(err)
	var wait sync.WaitGroup
	for n := 0; n < 100; n++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			var a, b int
			must(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				return tx.QueryRow(ctx, "select $1::int + 1", n).Scan(&a)
			}))
			tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: n%2 == 0})
			must(err)
			must(tx.StmtContext(ctx, statement).QueryRow(n).Scan(&b))
			must(tx.Commit())
			expect(a == n+1 && b == n*2, "%d: %d and %d", n, a, b)
		}()
	}
	wait.Wait()
	must(statement.Close())
}
