// SPDX-License-Identifier: PostgreSQL
// postgresjs_clients: postgres.js in its ordinary use, many clients at once: statements that it prepares and pipelines by
// itself, transactions with savepoints, cursors, COPY, errors, its own pool. Usage: node postgresjs_clients.js HOST PORT CLIENTS
'use strict';
const assert = require('assert');
const { pipeline } = require('stream/promises');
const { Readable } = require('stream');
const postgres = require('postgres');

const [host, port, count] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];

function connect(i, max) {
  return postgres({ host, port, user: 'postgres', database: 'postgres', password: 'x', max, prepare: i % 3 !== 0, onnotice: () => {},
    connection: { application_name: `pjs ${i}` } });
}

async function one(i) {
  const sql = connect(i, 1);
  for (let n = 0; n < 10; n++) {
    const work = sql.begin(async (tx) => {
      await tx`insert into drv_pjs values (${i}, ${n})`;
      await assert.rejects(tx.savepoint((sp) => sp`insert into drv_pjs values (${i}, ${n})`), { code: '23505' });
      const [row] = await tx`select count(*)::int as n from drv_pjs where client = ${i}`;
      assert.strictEqual(row.n, Math.floor((n + 1) / 2) + 1);
      if (n % 2) throw new Error('not wanted');
    });
    await (n % 2 ? assert.rejects(work, /not wanted/) : work);
    assert.strictEqual((await sql`show application_name`)[0].application_name, `pjs ${i}`);
  }
  const sums = await Promise.all([...Array(30).keys()].map((n) => sql`select ${i}::int + ${n}::int as s`));
  sums.forEach((r, n) => assert.strictEqual(r[0].s, i + n));
  let sum = 0;
  await sql`select g from generate_series(1, 25) g`.cursor(7, (rows) => { sum += rows.reduce((a, r) => a + r.g, 0); });
  assert.strictEqual(sum, 325);
  const rows = [...Array(50).keys()].map((n) => `${i}\t${n + 100}\n`);
  await pipeline(Readable.from(rows), await sql`copy drv_pjs from stdin`.writable());
  await assert.rejects(sql`select 1 / ${0}::int`, { code: '22012' });
  assert.strictEqual((await sql.unsafe('select 1 as a; select 2 as b')).length, 2);
  await sql`insert into drv_pjs ${sql([{ client: i, n: 500 }, { client: i, n: 501 }])}`;
  assert.strictEqual((await sql`select count(*)::int as n from drv_pjs where client = ${i}`)[0].n, 57);
  await sql.end();
}

async function ownPool() {
  const sql = connect(1000, 8);
  const got = await Promise.all([...Array(100).keys()].map((n) => sql`select ${n}::int * 2 as v`));
  got.forEach((r, n) => assert.strictEqual(r[0].v, n * 2));
  await sql.end();
}

Promise.all([...Array(count).keys()].map(one)).then(ownPool).then(() => console.log('ok', count), (e) => {
  console.error(e);
  process.exit(1);
});
