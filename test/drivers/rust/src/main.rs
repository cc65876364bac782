// SPDX-License-Identifier: PostgreSQL
// tokio_clients: tokio-postgres in its ordinary use, many clients at once: prepared statements, pipelining by
// joined futures, transactions with savepoints, portals, errors. Usage: tokio_clients HOST PORT CLIENTS
mod more;

use futures_util::future::{join_all, try_join_all};
use tokio_postgres::{error::SqlState, Error, NoTls};

async fn transactions(client: &mut tokio_postgres::Client, i: i32) -> Result<(), Error> {
    let put = client.prepare("insert into drv_tokio values ($1, $2)").await?;
    let count = client.prepare("select count(*)::int from drv_tokio where client = $1").await?;
    for n in 0..10i32 {
        let mut tx = client.transaction().await?;
        tx.execute(&put, &[&i, &n]).await?;
        {
            let inner = tx.savepoint("a").await?;
            let doubled = inner.execute(&put, &[&i, &n]).await.unwrap_err();
            assert_eq!(doubled.code(), Some(&SqlState::UNIQUE_VIOLATION), "client {i}");
            inner.rollback().await?;
        }
        if n % 2 == 0 {
            tx.commit().await?;
        } else {
            tx.rollback().await?;
        }
        let got: i32 = client.query_one(&count, &[&i]).await?.get(0);
        assert_eq!(got, n / 2 + 1, "client {i} round {n}");
    }
    Ok(())
}

async fn rest(client: &mut tokio_postgres::Client, i: i32) -> Result<(), Error> {
    let add = client.prepare("select $1::int + $2::int").await?;
    let numbers: Vec<i32> = (0..20).collect();
    let sums = try_join_all(numbers.iter().map(|n| {
        let (client, add) = (&*client, &add);
        async move { client.query_one(add, &[&i, n]).await }
    }))
    .await?;
    for (n, row) in sums.iter().enumerate() {
        assert_eq!(row.get::<_, i32>(0), i + n as i32);
    }
    let tx = client.transaction().await?;
    let portal = tx.bind("select g from generate_series(1, 25) g", &[]).await?;
    let mut sum = 0;
    loop {
        let rows = tx.query_portal(&portal, 7).await?;
        if rows.is_empty() {
            break;
        }
        sum += rows.iter().map(|r| r.get::<_, i32>(0)).sum::<i32>();
    }
    assert_eq!(sum, 325);
    tx.commit().await?;
    assert!(client.batch_execute("select 1/0").await.is_err());
    client.batch_execute("set work_mem = '5MB'; select 1").await?;
    let kept: String = client.query_one("show work_mem", &[]).await?.get(0);
    assert_eq!(kept, "5MB");
    Ok(())
}

async fn one(host: String, port: String, i: i32) -> Result<(), Error> {
    let text = format!("host={host} port={port} user=postgres dbname=postgres application_name=tokio_{i}");
    let (mut client, connection) = tokio_postgres::connect(&text, NoTls).await?;
    let driver = tokio::spawn(connection);
    transactions(&mut client, i).await?;
    rest(&mut client, i).await?;
    more::run(&mut client, i).await?;
    let name: String = client.query_one("show application_name", &[]).await?.get(0);
    assert_eq!(name, format!("tokio_{i}"));
    drop(client);
    driver.await.expect("the connection's task").expect("the connection");
    Ok(())
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    let clients: i32 = args[3].parse().expect("a number of clients");
    let text = format!("host={} port={} user=postgres dbname=postgres", args[1], args[2]);
    more::prepare(&text).await.expect("types");
    let all = (0..clients).map(|i| tokio::spawn(one(args[1].clone(), args[2].clone(), i)));
    for done in join_all(all).await {
        done.expect("a client").expect("a client's queries");
    }
    more::notifications(&text).await.expect("notifications");
    println!("ok {clients}");
}
