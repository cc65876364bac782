// SPDX-License-Identifier: PostgreSQL
// node_clients: node-postgres in its ordinary use, many clients at once: plain, parametrised and named queries,
// transactions, cursors, errors, a pool of its own. Usage: node node_clients.js HOST PORT CLIENTS
'use strict';
const assert = require('assert');
const { Client, Pool } = require('pg');
const Cursor = require('pg-cursor');

const [host, port, count] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const options = { host, port, user: 'postgres', database: 'postgres' };

async function one(i) {
  const c = new Client({ ...options, application_name: `node ${i}` });
  await c.connect();
  for (let n = 0; n < 10; n++) {
    await c.query('begin');
    await c.query({ name: 'put', text: 'insert into drv_node values ($1, $2)', values: [i, n] });
    await c.query('savepoint a');
    await assert.rejects(c.query({ name: 'put', text: 'insert into drv_node values ($1, $2)', values: [i, n] }), { code: '23505' });
    await c.query('rollback to a');
    await c.query(n % 2 ? 'rollback' : 'commit');
    const got = await c.query({ name: 'count', text: 'select count(*)::int as n from drv_node where client = $1', values: [i] });
    assert.strictEqual(got.rows[0].n, Math.floor(n / 2) + 1);
    assert.strictEqual((await c.query('show application_name')).rows[0].application_name, `node ${i}`);
  }
  const all = await Promise.all([...Array(20).keys()].map((n) => c.query('select $1::int + $2::int as s', [i, n])));
  all.forEach((r, n) => assert.strictEqual(r.rows[0].s, i + n));
  await c.query('begin');
  const cursor = c.query(new Cursor('select generate_series(1, 25) as g'));
  let sum = 0;
  for (let rows = await cursor.read(7); rows.length; rows = await cursor.read(7)) sum += rows.reduce((a, r) => a + r.g, 0);
  assert.strictEqual(sum, 325);
  await cursor.close();
  await c.query('commit');
  await assert.rejects(c.query('select 1/0'), { code: '22012' });
  const strings = await c.query('select 1 as a; select 2 as b');
  assert.strictEqual(strings.length, 2);
  await c.end();
}

async function ownPool() {
  const pool = new Pool({ ...options, max: 8 });
  const got = await Promise.all([...Array(100).keys()].map((n) => pool.query({ name: `p${n % 5}`, text: `select ${n % 5}::int * 100 + $1::int as v`, values: [n] })));
  got.forEach((r, n) => assert.strictEqual(r.rows[0].v, (n % 5) * 100 + n));
  await pool.end();
}

Promise.all([...Array(count).keys()].map(one)).then(ownPool).then(() => console.log('ok', count), (e) => {
  console.error(e);
  process.exit(1);
});
