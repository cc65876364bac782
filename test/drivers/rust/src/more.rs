// SPDX-License-Identifier: PostgreSQL
// more: what tokio-postgres does that others do not: transactions and errors pipelined by joined futures, rows as a stream, COPY both
// ways, types that it looks up and prepares for, statements closed when they are dropped, cancel tokens, notifications.
use futures_util::future::join;
use futures_util::{pin_mut, stream, SinkExt, StreamExt, TryStreamExt};
use std::time::Duration;
use tokio_postgres::types::Type;
use tokio_postgres::{error::SqlState, AsyncMessage, Client, Error, NoTls, SimpleQueryMessage};

async fn pipelined(client: &Client, i: i32) -> Result<(), Error> {
    // Each query is a sequence of its own: the second fails, the third does not hear of it.
    let (good, bad) = join(client.query_one("select $1::int", &[&i]), client.query_one("select 1 / $1::int", &[&0i32])).await;
    assert_eq!(good?.get::<_, i32>(0), i);
    assert_eq!(bad.unwrap_err().code(), Some(&SqlState::DIVISION_BY_ZERO), "client {i}");
    let (begun, put) = join(client.batch_execute("begin"), client.execute("insert into drv_tokio values ($1, 700)", &[&i])).await;
    begun?;
    assert_eq!(put?, 1);
    let (doubled, late) = join(
        client.execute("insert into drv_tokio values ($1, 700)", &[&i]),
        client.execute("insert into drv_tokio values ($1, 701)", &[&i]),
    )
    .await;
    assert_eq!(doubled.unwrap_err().code(), Some(&SqlState::UNIQUE_VIOLATION), "client {i}");
    assert_eq!(late.unwrap_err().code(), Some(&SqlState::IN_FAILED_SQL_TRANSACTION), "client {i}");
    client.batch_execute("rollback").await?;
    let left: i64 = client.query_one("select count(*) from drv_tokio where client = $1 and n >= 700", &[&i]).await?.get(0);
    assert_eq!(left, 0, "client {i}");
    Ok(())
}

async fn streams(client: &Client, i: i32) -> Result<(), Error> {
    let rows = client.query_raw("select $1::int + g from generate_series(1, 300) g", [i]).await?;
    pin_mut!(rows);
    let mut n = 0;
    while let Some(row) = rows.try_next().await? {
        n += 1;
        assert_eq!(row.get::<_, i32>(0), i + n, "client {i}");
    }
    assert_eq!(n, 300);
    let typed = client.query_typed("select $1 + $2", &[(&i, Type::INT4), (&5i32, Type::INT4)]).await?;
    assert_eq!(typed[0].get::<_, i32>(0), i + 5);
    let sink = client.copy_in("copy drv_tokio from stdin").await?;
    pin_mut!(sink);
    let lines: Vec<_> = (800..830).map(|n| Ok::<_, Error>(bytes::Bytes::from(format!("{i}\t{n}\n")))).collect();
    sink.send_all(&mut stream::iter(lines)).await?;
    assert_eq!(sink.finish().await?, 30, "client {i}");
    let out = client.copy_out(&format!("copy (select n from drv_tokio where client = {i} and n > 827 order by n) to stdout")).await?;
    let told: Vec<bytes::Bytes> = out.try_collect().await?;
    assert_eq!(told.concat(), b"828\n829\n", "client {i}");
    let strings = client.simple_query("select 1 as a; select 2 as b").await?;
    assert_eq!(strings.iter().filter(|m| matches!(m, SimpleQueryMessage::Row(_))).count(), 2);
    Ok(())
}

/// Prepared and dropped again and again: each Close goes with what comes next.
async fn statements(client: &mut Client, i: i32) -> Result<(), Error> {
    for n in 0..30i32 {
        let it = client.prepare_typed("select $1 * 2 + $2", &[Type::INT4, Type::INT4]).await?;
        assert_eq!(client.query_one(&it, &[&i, &n]).await?.get::<_, i32>(0), i * 2 + n);
    }
    let mood = client.prepare("select $1::drv_tokio_mood, array['ok'::drv_tokio_mood], (1, 'a')::drv_tokio_pair").await?;
    assert_eq!(mood.params()[0].name(), "drv_tokio_mood");
    assert_eq!(mood.columns()[1].type_().name(), "_drv_tokio_mood");
    let tx = client.build_transaction().read_only(true).isolation_level(tokio_postgres::IsolationLevel::Serializable).start().await?;
    let level: String = tx.query_one("show transaction_isolation", &[]).await?.get(0);
    assert_eq!(level, "serializable");
    let refused = tx.execute("insert into drv_tokio values ($1, 900)", &[&i]).await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::READ_ONLY_SQL_TRANSACTION), "client {i}");
    drop(tx); // rolled back with what comes next
    let level: String = client.query_one("show transaction_isolation", &[]).await?.get(0);
    assert_eq!(level, "read committed");
    Ok(())
}

/// A statement of a table that changes is refused until it is prepared anew, in a transaction and outside: never rows of another shape.
async fn changing_table(client: &mut Client, i: i32) -> Result<(), Error> {
    let table = format!("drv_tokio_ddl_{i}");
    let text = format!("select * from {table}");
    client.batch_execute(&format!("drop table if exists {table}; create table {table} as select 1 as c0")).await?;
    let mut it = client.prepare(&text).await?;
    for columns in 1..5usize {
        for _ in 0..3 {
            assert_eq!(client.query_one(&it, &[]).await?.len(), columns, "client {i}");
        }
        client.batch_execute(&format!("alter table {table} add column c{columns} int")).await?;
        for _ in 0..3 {
            let stale = client.query(&it, &[]).await.unwrap_err();
            assert_eq!(stale.code(), Some(&SqlState::FEATURE_NOT_SUPPORTED), "client {i}");
        }
        let tx = client.transaction().await?;
        tx.batch_execute("select 1").await?;
        assert_eq!(tx.query(&it, &[]).await.unwrap_err().code(), Some(&SqlState::FEATURE_NOT_SUPPORTED), "client {i}");
        tx.rollback().await?;
        let tx = client.transaction().await?;
        tx.batch_execute("select 1").await?;
        it = tx.prepare(&text).await?;
        assert_eq!(tx.query_one(&it, &[]).await?.len(), columns + 1, "client {i}");
        tx.commit().await?;
        assert_eq!(client.query_one(&text, &[]).await?.len(), columns + 1, "client {i}");
    }
    client.batch_execute(&format!("drop table {table}")).await
}

/// All clients at once, most of which wait for a link. What is cancelled is behind the Close of a statement that was dropped.
async fn cancelled(client: &Client, i: i32) -> Result<(), Error> {
    for n in 0..3i32 {
        if n > 0 {
            client.simple_query("select 1").await?;
        }
        let token = client.cancel_token();
        let asks = async {
            tokio::time::sleep(Duration::from_millis(80)).await;
            token.cancel_query(NoTls).await
        };
        let (slept, asked) = join(client.batch_execute("select pg_sleep(20)"), asks).await;
        asked?;
        assert_eq!(slept.unwrap_err().code(), Some(&SqlState::QUERY_CANCELED), "client {i}");
        assert_eq!(client.query_one("select $1::int", &[&n]).await?.get::<_, i32>(0), n, "client {i}");
    }
    Ok(())
}

pub async fn run(client: &mut Client, i: i32) -> Result<(), Error> {
    pipelined(client, i).await?;
    streams(client, i).await?;
    statements(client, i).await?;
    if std::env::var("PGT_READERS").is_err() {
        changing_table(client, i).await?;
    }
    cancelled(client, i).await
}

pub async fn prepare(text: &str) -> Result<(), Error> {
    let (client, connection) = tokio_postgres::connect(text, NoTls).await?;
    tokio::spawn(connection);
    client
        .batch_execute(
            "do $$ begin create type drv_tokio_mood as enum ('sad', 'ok'); create type drv_tokio_pair as (a int, b text);
             exception when duplicate_object then null; end $$",
        )
        .await
}

pub async fn notifications(text: &str) -> Result<(), Error> {
    let (client, mut connection) = tokio_postgres::connect(text, NoTls).await?;
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(n) = message {
                let _ = tell.send(n.payload().to_string());
            }
        }
    });
    client.batch_execute("listen drv_tokio_told").await?;
    let (other, connection) = tokio_postgres::connect(text, NoTls).await?;
    tokio::spawn(connection);
    other.execute("select pg_notify('drv_tokio_told', $1)", &[&"hello"]).await?;
    assert_eq!(told.recv().await.as_deref(), Some("hello"));
    client.batch_execute("unlisten *").await
}
