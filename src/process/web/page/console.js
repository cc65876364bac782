// SPDX-License-Identifier: PostgreSQL
// console.js: the console: asks pgpool for JSON and shows it. Texts never become HTML: elements are made one by one.
"use strict";

const TABS = ["now", "servers", "pools", "clients", "queries", "cache", "events", "log", "settings", "reports"];
const PERIOD_MS = { now: 2000, servers: 2000, pools: 2000, clients: 3000, queries: 5000, cache: 3000, log: 3000, events: 5000, settings: 0, reports: 3000 };
const ROWS = 300;
const state = { session: null, tab: "now", seconds: 600, reports: [], report: "pool_processes", filter: "", onlyChanged: true, timer: 0, round: 0, answers: true };

const $ = (id) => document.getElementById(id);

function el(name, attributes, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "onclick" || key === "oninput" || key === "onsubmit" || key === "onchange") e[key] = value;
    else if (value !== false && value !== undefined) e.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) e.append(child);
  return e;
}

async function ask(path, form) {
  const headers = form ? { "Content-Type": "application/x-www-form-urlencoded", "X-Pgpool-Console": "1" } : {};
  if (state.session) headers["X-CSRF-Token"] = state.session.csrf;
  const answer = await fetch("api/v1/" + path, { method: form ? "POST" : "GET", headers, credentials: "same-origin",
    body: form ? new URLSearchParams(form).toString() : undefined });
  const isJson = (answer.headers.get("Content-Type") || "").startsWith("application/json");
  return { status: answer.status, data: isJson ? await answer.json() : null };
}

async function rows(path) {
  const answer = await ask(path);
  if (answer.status === 401) throw new Error("401");
  return answer.data;
}

// --- small parts ---

function toast(text, level) {
  const t = $("toast");
  t.textContent = text;
  t.className = level;
  t.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { t.hidden = true; }, level === "alarm" ? 12000 : 5000);
}

function card(title, ...children) {
  return el("section", { class: "card" }, title ? el("h2", {}, title) : null, ...children);
}

function tag(text, level) {
  return el("span", { class: "tag " + level }, text);
}

// columns: [{title, cell(row), kind}]
function table(columns, list) {
  if (list.length === 0) return el("p", { class: "soft" }, word("nothing"));
  const head = el("thead", {}, el("tr", {}, columns.map((c) => el("th", { scope: "col", class: c.kind || "", title: c.hint }, c.title))));
  const body = el("tbody", {}, list.map((row) => el("tr", {}, columns.map((c) => {
    const content = c.cell(row);
    return el("td", { class: c.kind || "", "data-name": c.title }, content === null || content === undefined ? "" : content);
  }))));
  return el("div", { class: "scroll" }, el("table", { class: "stack" }, head, body));
}

function column(title, key, kind) {
  return { title, kind, cell: (row) => row[key] === null ? "" : String(row[key]) };
}

function figure(value, text) {
  return el("div", { class: "figure" }, el("b", {}, value), el("span", {}, text));
}

function meter(used, limit) {
  const part = limit > 0 ? Math.min(1, used / limit) : 0;
  const level = part >= 1 ? "alarm" : part >= 0.9 ? "warning" : "good";
  return el("div", { class: "meter" }, svg("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true", class: level },
    svg("rect", { width: 100 * part, height: 8, fill: "currentColor" })));
}

function order(name, text, fields, isCalm) {
  $("ask-text").textContent = text;
  $("ask-yes").textContent = word(name);
  $("ask-yes").className = isCalm ? "" : "danger";
  $("ask-why-label").hidden = name !== "detach";
  $("ask-why").value = "";
  $("ask").returnValue = "no";
  $("ask").onclose = async () => {
    if ($("ask").returnValue !== "yes") return;
    const form = name === "detach" ? { ...fields, why: $("ask-why").value } : fields;
    try {
      const answer = await ask("do/" + name, form);
      if (answer.data && answer.data.error) toast([answer.data.error, answer.data.hint, answer.data.said].filter(Boolean).join("\n"), "alarm");
      else if (answer.status !== 200) toast(word("viewersOnly"), "alarm");
      else toast([word("ordered"), answer.data.said].filter(Boolean).join("\n"), "good");
    } catch { toast(word("gone"), "alarm"); }
    refresh();
  };
  $("ask").showModal();
}

function button(name, text, fields, isCalm) {
  return el("button", { type: "button", class: "plain small", "data-order": name, onclick: () => order(name, text, fields, isCalm) }, word(name));
}

const mayOrder = () => state.session && state.session.role === "operator";

// --- charts ---

// Differences of counters per second; `per`: of another counter instead of time.
function rates(samples, at, per, scale) {
  return samples.slice(1).map((s, i) => {
    const d = s[at] - samples[i][at];
    const by = per === undefined ? s[0] - samples[i][0] : s[per] - samples[i][per];
    return d < 0 || by < 0 ? null : by === 0 ? (per === undefined ? null : 0) : d / by * scale;
  });
}

function chartCard(title, times, lines) {
  const legend = el("div", { class: "legend" }, lines.map((l, n) => {
    const last = l.values.filter((v) => v !== null).pop();
    return el("span", {}, el("i", { class: "l" + n % 6 }), `${l.name} `, el("b", {}, last === undefined ? "" : short(last)));
  }));
  return card(title, chart(title, times, lines), legend);
}

function charts(history) {
  const s = history.samples;
  const times = s.slice(1).map((x) => x[0]);
  const gauge = (at) => s.slice(1).map((x) => x[at]);
  const nodes = [...Array(Math.min(6, history.nodes)).keys()];
  const place = (n, name) => history.columns.length + history.node_columns.length * n + history.node_columns.indexOf(name);
  const all = [
    chartCard(word("chartWork"), times, [{ name: word("statements"), values: rates(s, 4, undefined, 1) }, { name: word("transactions"), values: rates(s, 5, undefined, 1) }]),
    chartCard(word("chartTime"), times, [{ name: word("request"), values: rates(s, 6, 4, 1e-3) }, { name: word("wait"), values: rates(s, 8, 7, 1e-3) }]),
    chartCard(word("chartClients"), times, [{ name: word("clients"), values: gauge(1) }, { name: word("waiting"), values: gauge(2) }, { name: word("links"), values: gauge(3) }]),
    chartCard(word("chartNodes"), times, nodes.map((n) => ({ name: `#${n}`, values: rates(s, place(n, "statements"), undefined, 1) }))),
    chartCard(word("chartNodeTime"), times, nodes.map((n) => ({ name: `#${n}`, values: rates(s, place(n, "query_us"), place(n, "requests"), 1e-3) }))),
  ];
  if (history.nodes > 1) all.push(chartCard(word("chartLag"), times, nodes.map((n) => ({ name: `#${n}`, values: gauge(place(n, "lag_bytes")) }))));
  return el("div", { class: "grid" }, all);
}

// Which reports this pgpool has.
async function learnReports() {
  state.reports = (await rows("")).reports;
}

// --- pages ---

function nodeRow(nodes) {
  const columns = [
    column("#", "node_id"), { title: word("address"), cell: (n) => `${n.hostname}:${n.port}` },
    { title: word("status"), cell: (n) => tag(statusWord(n.status), n.status === "up" ? "good" : n.status === "waiting" ? "note" : "alarm") },
    { title: word("role"), cell: (n) => word(n.role) },
    { title: word("lag"), kind: "number", cell: (n) => n.role === "primary" ? "" : lagText(n) },
    { title: word("sync"), cell: (n) => n.replication_sync_state },
    { title: word("reads"), kind: "number", cell: (n) => `${Math.round(n.lb_weight * 100)} %` },
    { title: word("select"), kind: "number", cell: (n) => short(n.select_cnt) },
    column(word("since"), "last_status_change", "time")];
  if (mayOrder()) columns.push({ title: "", kind: "actions", cell: (n) => el("div", {},
    n.status === "down" ? button("attach", word("askAttach", n.node_id), { node: n.node_id }, true) : button("detach", word("askDetach", n.node_id), { node: n.node_id }),
    n.role === "standby" && n.status === "up" ? button("promote", word("askPromote", n.node_id), { node: n.node_id }) : null,
    n.status === "down" || n.status === "quarantine" ? button("recover", word("askRecover", n.node_id), { node: n.node_id }) : null) });
  return table(columns, nodes);
}

function eventTable(list) {
  return table([column(word("time"), "time", "time"), { title: word("event"), cell: (e) => tag(e.event, /fail|down|no_primary|refused|kill|quarantine/.test(e.event) ? "warning" : "note") },
    { title: word("what"), cell: (e) => e.cause ? `${e.text} (${e.cause})` : e.text }, column(word("actor"), "actor")], list);
}

function recoveryTable(list) {
  const levels = { running: "note", succeeded: "good", failed: "alarm" };
  return table([column("#", "node_id"), { title: word("address"), cell: (r) => `${r.hostname}:${r.port}` }, { title: word("status"), cell: (r) => tag(word(r.state), levels[r.state] || "note") },
    column(word("step"), "step"), column(word("copiedFrom"), "primary_node_id"), column(word("begun"), "started", "time"), column(word("ended"), "ended", "time"),
    column(word("actor"), "who"), column(word("reason"), "message")], list.slice().reverse());
}

// The pgpools of the cluster; who holds the shared address, why, and for how long without hearing from the others.
function watchdogTable(list) {
  const level = (p) => p.status === "LEADER" ? "good" : p.status === "STANDBY" ? "note" : "warning";
  const lease = (p) => p.lease_left_ms === null ? "" : `${(p.lease_left_ms / 1000).toFixed(1)} s`;
  return table([column("#", "pgpool_id"), { title: word("name"), cell: (p) => p.local ? `${p.name} (${word("thisOne")})` : p.name },
    { title: word("status"), cell: (p) => tag(p.status, level(p)) }, column(word("priority"), "priority", "number"),
    { title: word("vote"), cell: (p) => p.witness ? word("witness") : p.votes ? "✓" : "" }, column(word("heard"), "heard_at", "time"),
    column(word("leaderSince"), "leader_since", "time"), column(word("quorum"), "quorum"), column(word("sharedAddress"), "address"),
    { title: word("lease"), kind: "number", cell: lease }, column(word("reason"), "address_reason"), column(word("lostServers"), "lost_nodes")], list);
}

function bytes(n) {
  return n === null ? "" : `${short(n)}B`;
}

function queueTable(list) {
  if (list.length === 0) return el("p", { class: "soft" }, word("nobodyWaits"));
  return table([column(word("database"), "database"), column(word("user"), "username"), column(word("node"), "node"),
    column(word("waiting"), "waiting", "number"), { title: word("longest"), kind: "number", cell: (q) => `${short(q.longest_wait_ms)} ms` }, column(word("reason"), "reason")], list);
}

// What ties a client to its server connection, and what loosens it.
function pinText(client) {
  return client.pin_reason.split(", ").map((reason) => word(`pin_${reason.replaceAll(" ", "_")}`)).join(" ");
}

// All databases, those that somebody has used, and those with an order; what can be ordered depends on what holds.
function orderTable(stats, orders) {
  const held = new Map(orders.map((o) => [o.database, o]));
  const names = [...new Set(["", ...stats.map((d) => d.database), ...held.keys()])].filter((name) => !name.startsWith("<"));
  const columns = [{ title: word("database"), cell: (o) => o.database === "" ? word("allDatabases") : o.database },
    { title: word("status"), cell: (o) => el("span", {}, o.paused ? tag(word("paused"), "alarm") : "", o.draining ? tag(word("draining"), "warning") : "", o.paused || o.draining ? "" : tag(word("running"), "soft")) },
    { title: word("reconnectedAt"), kind: "time", cell: (o) => o.reconnect_at || "" }];
  const name = (o) => o.database === "" ? word("allDatabases") : o.database;
  if (mayOrder()) columns.push({ title: "", kind: "actions", cell: (o) => el("div", {},
    o.paused || o.draining ? button("resume", word("askResume", name(o)), { database: o.database }, true) : null,
    o.paused ? null : button("pause", word("askPause", name(o)), { database: o.database }),
    o.draining ? null : button("drain", word("askDrain", name(o)), { database: o.database }),
    button("reconnect", word("askReconnect", name(o)), { database: o.database }, true)) });
  return table(columns, names.map((database) => held.get(database) || { database, paused: false, draining: false }));
}

// Server connections, with who has each and why it is kept.
function linkCard(links) {
  const levels = { active: "good", lent: "note", "idle in transaction": "note", cleaning: "warning", connecting: "warning" };
  return card(`${word("links")} (${word("ofAll", links.rows.length, links.total)})`, table([column(word("id"), "id"), column(word("node"), "node"),
    column(word("user"), "user"), column(word("database"), "database"), { title: word("state"), cell: (l) => tag(l.state, levels[l.state] || "soft") },
    column(word("serverPid"), "server_pid"), column(word("ofClient"), "client_id"), column(word("begun"), "created_at", "time"), column(word("uses"), "uses", "number"),
    { title: "TLS", cell: (l) => l.tls ? "✓" : "" }, column(word("reason"), "pin_reason"), column(word("statement"), "statement", "code")], links.rows));
}

// Any report, as it is: also those that this page knows nothing of.
function reportTable(report, list) {
  const isNumber = (c) => c.type === "integer" || c.type === "real";
  return table(report.columns.map((c) => ({ ...column(c.name, c.name, isNumber(c) ? "number" : c.type === "time" ? "time" : ""), hint: c.description })), list);
}

// A line of log_destination = jsonlog as the other form has it.
function readable(line) {
  if (!line.startsWith("{")) return line;
  try {
    const o = JSON.parse(line);
    const who = [o.user, o.dbname, o.remote_host].filter(Boolean).join(" ");
    return [`${o.timestamp} [${o.pid}] ${who === "" ? o.backend_type : who} ${o.error_severity}:  ${o.message}`,
      o.detail ? `DETAIL:  ${o.detail}` : "", o.hint ? `HINT:  ${o.hint}` : "", o.statement ? `STATEMENT:  ${o.statement}` : ""].filter(Boolean).join("\n");
  } catch {
    return line; // the first one may be cut
  }
}

const pages = {
  async now() {
    const [nodes, history, queue, events] = await Promise.all([rows("nodes"), rows(`history?seconds=${state.seconds}`), rows("queue"), rows("events")]);
    const s = history.samples;
    const last = s[s.length - 1] || [];
    const back = s.slice(-Math.min(s.length, 6));
    // The first second has none yet: that is no 0.
    const isNew = last.length === 0;
    const count = (i) => isNew ? "–" : short(last[i]);
    const rate = (i, per, scale) => rates([back[0] || last, last], i, per, scale)[0];
    const perSecond = (i) => s.length < 2 ? "–" : short(rate(i, undefined, 1) || 0);
    const spans = [[600, "minutes"], [3600, "hour"], [86400, "day"]].map(([seconds, name]) =>
      el("button", { type: "button", class: "plain small" + (state.seconds === seconds ? " chosen" : ""), "aria-pressed": String(state.seconds === seconds),
        onclick: () => { state.seconds = seconds; refresh(); } }, word(name)));
    return [
      card(null, el("div", { class: "figures" }, figure(count(1), word("clients")), figure(count(2), word("waiting")), figure(count(3), word("links")),
        figure(perSecond(4), word("perSecond")), figure(perSecond(5), word("txPerSecond")),
        figure(s.length < 2 ? "–" : `${short(rate(6, 4, 1e-3) || 0)} ${word("ms")}`, word("mean")))),
      card(word("servers"), picture(nodes.rows)),
      queue.rows.length > 0 ? card(word("whoWaits"), queueTable(queue.rows)) : null,
      el("div", { class: "bar" }, spans), charts(history),
      card(word("events"), eventTable(events.rows.slice(-5).reverse()))];
  },
  async servers() {
    const [nodes, stats, times] = await Promise.all(["nodes", "backend_stats", "node_times"].map((name) => rows(name)));
    const ms = (key) => (n) => n.requests === 0 ? "" : `${short(n[key] / 1000)} ms`;
    const [recoveries, watchdog, votes] = await Promise.all(["recovery", "watchdog", "watchdog_events"].map((name) => rows(name)));
    return [el("h1", {}, word("servers")), card(null, picture(nodes.rows)), card(null, nodeRow(nodes.rows)),
      card(word("statements"), table([column("#", "node_id"), { title: word("address"), cell: (n) => `${n.hostname}:${n.port}` },
        ...[["select_cnt", "SELECT"], ["insert_cnt", "INSERT"], ["update_cnt", "UPDATE"], ["delete_cnt", "DELETE"], ["ddl_cnt", "DDL"], ["other_cnt", word("otherStatements")], ["error_cnt", "ERROR"], ["fatal_cnt", "FATAL"]]
          .map(([key, title]) => ({ title, kind: "number", cell: (n) => short(n[key]) }))], stats.rows)),
      card(word("nodeTimes"), table([column("#", "node_id"), { title: word("address"), cell: (n) => `${n.hostname}:${n.port}` }, { title: word("requests"), kind: "number", cell: (n) => short(n.requests) },
        { title: word("meanTime"), kind: "number", cell: (n) => n.requests === 0 ? "" : `${short(n.query_time_us / n.requests / 1000)} ms` },
        ...[["p50", word("p50")], ["p90", "90 %"], ["p99", word("p99")], ["p999", "99.9 %"]].map(([key, title]) => ({ title, kind: "number", cell: ms(`query_${key}_us`) }))], times.rows)),
      recoveries.rows.length > 0 ? card(word("recoveries"), recoveryTable(recoveries.rows)) : null,
      watchdog.rows.length > 0 ? card(word("watchdog"), watchdogTable(watchdog.rows)) : null,
      votes.rows && votes.rows.length > 0 ? card(word("watchdogEvents"), table([column(word("time"), "time", "time"), column(word("what"), "text")], votes.rows.slice(-10).reverse())) : null];
  },
  async pools() {
    const [queue, limits, stats, pins, orders] = await Promise.all([rows("queue"), rows("limits"), rows("stats"), rows("pins"), rows("orders")]);
    const us = (key) => (d) => `${short(d[key] / 1000)} ms`;
    return [el("h1", {}, word("pools")), card(word("whoWaits"), queueTable(queue.rows)),
      mayOrder() || orders.rows.length > 0 ? card(word("orders"), orderTable(stats.rows, orders.rows)) : null,
      card(word("limits"), table([column(word("name"), "name"), column(word("node"), "node"), column(word("database"), "database"), column(word("user"), "user"),
        { title: word("used"), kind: "number", cell: (l) => short(l.used) }, { title: word("limit"), kind: "number", cell: (l) => l.limit === 0 ? word("none") : short(l.limit) },
        { title: "", cell: (l) => l.limit > 0 ? meter(l.used, l.limit) : "" },
        { title: word("waiting"), kind: "number", cell: (l) => l.waiting > 0 ? tag(String(l.waiting), "warning") : "0" }], limits.rows)),
      card(word("perDatabase"), table([column(word("database"), "database"), ...["logins", "queries", "transactions"].map((k) => ({ title: word(k), kind: "number", cell: (d) => short(d[k]) })),
        { title: word("p50"), kind: "number", cell: us("query_p50_us") }, { title: word("p99"), kind: "number", cell: us("query_p99_us") },
        { title: word("waitP99"), kind: "number", cell: us("wait_p99_us") }], stats.rows)),
      card(word("pins"), table([column(word("database"), "database"), column(word("reason"), "reason"), column(word("clients"), "clients", "number"), column(word("total"), "total", "number")], pins.rows))];
  },
  async clients() {
    const [found, links] = await Promise.all(["clients", "links"].map((name) => rows(`${name}?limit=${ROWS}&q=${encodeURIComponent(state.filter)}`)));
    const levels = { waiting: "warning", active: "good", "idle in transaction": "note", "idle in transaction (aborted)": "warning" };
    const columns = [column(word("id"), "id"), column(word("user"), "user"), column(word("database"), "database"), column(word("application"), "application_name"),
      { title: word("host"), cell: (c) => c.client_port === null ? c.client_host : `${c.client_host}:${c.client_port}` },
      { title: word("state"), cell: (c) => el("span", {}, tag(c.state, levels[c.state] || "soft"), c.wait_ms > 0 ? ` ${short(c.wait_ms)} ms` : "") },
      column(word("node"), "node"), { title: word("statement"), kind: "code", cell: (c) => el("span", {}, c.statement, c.pinned ? el("div", { class: "soft", title: pinText(c) }, word("pin") + c.pin_reason, c.pool_mode === "session" ? "" : ". " + pinText(c)) : "") }];
    if (mayOrder()) columns.push({ title: "", kind: "actions", cell: (c) => el("div", {}, button("cancel", word("askCancel", c.id), { client: c.id }, true), button("kill", word("askKill", c.id), { client: c.id })) });
    const box = el("input", { id: "filter", type: "search", placeholder: word("filter"), "aria-label": word("filter"), value: state.filter,
      oninput: (e) => { state.filter = e.target.value; refresh(); } });
    return [el("div", { class: "bar" }, el("h1", {}, word("clients")), el("span", { class: "soft push" }, word("ofAll", found.rows.length, found.total))), card(null, el("label", {}, box), table(columns, found.rows)), linkCard(links)];
  },
  async queries() {
    const [found, settings] = await Promise.all([rows(`statements?limit=${ROWS}&q=${encodeURIComponent(state.filter)}`), rows("settings")]);
    const isOff = settings.rows.some((s) => s.name === "track_statements" && s.value === "off");
    const ms = (us) => us < 1e6 ? `${short(us / 1000)} ms` : `${short(us / 1e6)} s`;
    const all = found.rows.reduce((sum, s) => sum + s.total_us, 0);
    const columns = [{ title: word("share"), kind: "number", cell: (s) => all > 0 ? `${(100 * s.total_us / all).toFixed(1)} %` : "" },
      { title: word("calls"), kind: "number", cell: (s) => short(s.calls) }, { title: word("meanTime"), kind: "number", cell: (s) => ms(s.mean_us) },
      { title: word("p99"), kind: "number", cell: (s) => ms(s.p99_us) }, { title: word("longest"), kind: "number", cell: (s) => ms(s.max_us) },
      { title: word("rowsEach"), kind: "number", cell: (s) => s.calls > 0 ? short(s.rows / s.calls) : "" },
      { title: word("cacheHits"), kind: "number", cell: (s) => s.cache_hits > 0 ? short(s.cache_hits) : "" },
      { title: word("errors"), kind: "number", cell: (s) => s.errors > 0 ? tag(short(s.errors), "warning") : "" },
      column(word("node"), "node"), column(word("database"), "database"), { title: word("statement"), kind: "code", cell: (s) => el("span", { title: s.fingerprint }, s.statement) }];
    const box = el("input", { id: "filter", type: "search", placeholder: word("filterQueries"), "aria-label": word("filterQueries"), value: state.filter,
      oninput: (e) => { state.filter = e.target.value; refresh(); } });
    return [el("div", { class: "bar" }, el("h1", {}, word("queries")), el("span", { class: "soft push" }, word("ofAll", found.rows.length, found.total)),
      mayOrder() ? button("forget", word("askForget"), { all: 1 }) : null), isOff ? card(null, el("p", { class: "soft" }, word("statementsOff"))) : null, card(null, el("label", {}, box), table(columns, found.rows))];
  },
  async cache() {
    const [all, tables, streams] = await Promise.all([rows("cache"), rows(`cache_tables?limit=${ROWS}&q=${encodeURIComponent(state.filter)}`), rows("cache_streams")]);
    const c = all.rows[0];
    if (c.num_hash_entries === 0) return [el("h1", {}, word("cache")), card(null, el("p", { class: "soft" }, word("cacheOff")))];
    const size = c.used_cache_entries_size + c.free_cache_entries_size + c.fragment_cache_entries_size;
    const part = (hits, misses) => hits + misses === 0 ? "" : `${(100 * hits / (hits + misses)).toFixed(1)} %`;
    const columns = [column(word("database"), "database"), column(word("schema"), "schema"), column(word("table"), "table_name"),
      { title: word("results"), kind: "number", cell: (t) => short(t.cached_entries) }, { title: word("memory"), kind: "number", cell: (t) => bytes(t.cached_bytes) },
      { title: word("hitRatio"), kind: "number", cell: (t) => part(t.hits, t.misses) }, { title: word("hits"), kind: "number", cell: (t) => short(t.hits) },
      { title: word("misses"), kind: "number", cell: (t) => short(t.misses) },
      { title: word("notKept"), kind: "number", cell: (t) => t.fills_refused > 0 ? el("span", { title: t.refused_why }, short(t.fills_refused)) : "" },
      { title: word("madeInvalid"), kind: "number", cell: (t) => short(t.row_invalidations + t.table_invalidations) },
      column(word("lastWrite"), "last_write_at", "time"), column(word("writer"), "last_writer")];
    const box = el("input", { id: "filter", type: "search", placeholder: word("filterTables"), "aria-label": word("filterTables"), value: state.filter,
      oninput: (e) => { state.filter = e.target.value; refresh(); } });
    return [el("h1", {}, word("cache")),
      card(null, el("div", { class: "figures" }, figure(part(c.num_cache_hits, c.num_selects) || "–", word("hitRatio")), figure(short(c.num_cache_hits), word("hits")), figure(short(c.num_selects), word("misses")),
        figure(short(c.num_cache_entries), word("results")), figure(bytes(c.used_cache_entries_size), word("memoryOf", bytes(size))), meter(c.used_cache_entries_size, size))),
      card(word("perTable"), el("label", {}, box), table(columns, tables.rows)),
      streams.rows.length > 0 ? card(word("cacheStreams"), table([column(word("database"), "database"), { title: word("status"), cell: (x) => tag(x.state, x.good ? "good" : "warning") }, column(word("reason"), "reason")], streams.rows)) : null];
  },
  async log() {
    if (!mayOrder()) return [el("h1", {}, word("log")), card(null, el("p", { class: "soft" }, word("logForOperators")))];
    const found = await rows("log");
    const lines = (found.text || "").split("\n").map(readable).filter((l) => l !== "" && l.toLowerCase().includes(state.filter.toLowerCase())).slice(-ROWS);
    const level = (l) => /\b(PANIC|FATAL|ERROR):/.test(l) ? "alarm" : /\bWARNING:/.test(l) ? "warning" : "";
    const box = el("input", { id: "filter", type: "search", placeholder: word("filterLog"), "aria-label": word("filterLog"), value: state.filter,
      oninput: (e) => { state.filter = e.target.value; refresh(); } });
    return [el("div", { class: "bar" }, el("h1", {}, word("log")), el("span", { class: "soft push" }, found.file || "")),
      found.text === undefined ? card(null, el("p", { class: "soft" }, word(found.collector ? "logEmpty" : "logElsewhere"))) :
        card(null, el("label", {}, box), el("div", { class: "log", id: "lines", tabindex: "0" }, lines.reverse().map((l) => el("div", { class: level(l) }, l))))];
  },
  async events() {
    const found = await rows("events");
    return [el("h1", {}, word("events")), card(null, eventTable(found.rows.reverse()))];
  },
  async reports() {
    const report = state.reports.find((r) => r.name === state.report) || state.reports[0];
    const found = await rows(`${report.name}?limit=${ROWS}&q=${encodeURIComponent(state.filter)}`) || { rows: [], total: 0 };
    const choice = el("select", { id: "report", "aria-label": word("reports"), onchange: (e) => { state.report = e.target.value; state.filter = ""; refresh(); } },
      state.reports.map((r) => el("option", { value: r.name, selected: r.name === report.name }, `SHOW ${r.name.toUpperCase()}`)));
    const box = el("input", { id: "filter", type: "search", placeholder: word("filterLog"), "aria-label": word("filterLog"), value: state.filter,
      oninput: (e) => { state.filter = e.target.value; refresh(); } });
    return [el("div", { class: "bar" }, el("h1", {}, word("reports")), choice, el("span", { class: "soft push" }, word("ofAll", (found.rows || []).length, found.total || 0))),
      el("p", { class: "soft" }, report.description), card(null, el("label", {}, box), found.error ? el("p", { class: "tag alarm" }, found.error) : reportTable(report, found.rows))];
  },
  async settings() {
    const found = await rows("settings");
    const choose = (isOn, name) => el("button", { type: "button", class: "plain small" + (state.onlyChanged === isOn ? " chosen" : ""), "aria-pressed": String(state.onlyChanged === isOn),
      onclick: () => { state.onlyChanged = isOn; refresh(); } }, word(name));
    const list = found.rows.filter((s) => s.changed || !state.onlyChanged);
    return [el("div", { class: "bar" }, el("h1", {}, word("settings")), choose(true, "onlyChanged"), choose(false, "all"),
      mayOrder() ? el("span", { class: "push" }, button("reload", word("askReload"), { all: 1 }, true)) : null),
    el("p", { class: "soft" }, found.file),
    card(null, table([{ title: word("name"), cell: (s) => el("span", { class: s.changed ? "changed" : "" }, s.name) }, { title: word("value"), kind: "code", cell: (s) => s.value },
      { title: word("preset"), kind: "code", cell: (s) => s.default }, { title: word("whereSet"), kind: "code time", cell: (s) => el("span", { title: s.source }, s.source.slice(s.source.lastIndexOf("/") + 1)) }, { title: word("takenUp"), cell: (s) => word(s.taken_up === "restart" ? "restart" : "reloadWord") },
      column(word("description"), "description")], list))];
  },
};

// --- frame ---

function showBanner(health) {
  const banner = $("banner");
  const text = (t) => language.index === 1 ? t.ja : t.en;
  const [first, ...others] = health.troubles;
  const marks = { good: "✓", note: "i", warning: "!", alarm: "✕" };
  banner.className = first.level;
  banner.hidden = false;
  const parts = [el("div", { class: "first" }, el("span", { "aria-hidden": "true" }, marks[first.level]), el("span", { id: "sentence" }, text(first)))];
  if (others.length > 0) parts.push(el("ul", {}, others.map((t) => el("li", {}, text(t)))));
  banner.replaceChildren(...parts);
  document.title = (first.level === "good" ? "" : `${marks[first.level]} `) + "pgpool";
}

function showTabs() {
  $("tabs").hidden = !state.session;
  $("tabs").setAttribute("aria-label", "pgpool");
  $("tabs").replaceChildren(...TABS.map((name) => el("a", { href: "#" + name, "aria-current": name === state.tab ? "page" : false }, word(name))));
  const current = $("tabs").querySelector("[aria-current]");
  if (current && state.session) current.scrollIntoView({ block: "nearest", inline: "nearest" });
  $("logout").hidden = !state.session;
  $("who").textContent = state.session ? `${state.session.user} (${word(state.session.role)})` : "";
  $("language").textContent = word("language");
  for (const e of document.querySelectorAll("[data-word]")) e.textContent = word(e.dataset.word);
}

function showLogin(text) {
  state.session = null;
  clearTimeout(state.timer);
  $("banner").hidden = true;
  showTabs();
  const user = el("input", { id: "user", autocomplete: "username", required: true, autocapitalize: "none" });
  const password = el("input", { id: "password", type: "password", autocomplete: "current-password", required: true });
  const form = el("form", { onsubmit: async (e) => {
    e.preventDefault();
    const answer = await ask("login", { user: user.value, password: password.value });
    password.value = "";
    if (answer.status !== 200) { showLogin(word(answer.status === 429 ? "slower" : "wrong")); return; }
    state.session = answer.data;
    showTabs();
    await learnReports();
    refresh();
  } }, el("p", { class: "soft" }, word("loginText")), text ? el("p", { class: "tag alarm", role: "alert" }, text) : null,
  el("label", {}, el("span", {}, word("user")), user), el("label", {}, el("span", {}, word("password")), password), el("button", { type: "submit", id: "login" }, word("login")));
  $("main").className = "solo";
  $("main").replaceChildren(card(word("login"), form));
  user.focus();
}

// What is typed in, and where one has scrolled, survives a new picture of the page.
function replaceMain(parts) {
  const focus = document.activeElement && document.activeElement.id;
  const at = focus === "filter" ? document.activeElement.selectionStart : 0;
  $("main").className = "";
  $("main").replaceChildren(...parts.filter((p) => p !== null));
  if (focus === "report" && $("report")) $("report").focus();
  if (focus === "filter" && $("filter")) { $("filter").focus(); $("filter").setSelectionRange(at, at); }
}

async function refresh() {
  const round = ++state.round;
  clearTimeout(state.timer);
  try {
    const [health, parts] = await Promise.all([rows("health"), pages[state.tab]()]);
    if (round !== state.round) return;
    showBanner(health);
    const held = document.activeElement && document.activeElement !== document.body && $("main").contains(document.activeElement) && ["BUTTON", "SELECT"].includes(document.activeElement.tagName);
    if (!held || !state.isQuiet) replaceMain(parts);
    document.body.dataset.page = state.tab;
    state.answers = true;
  } catch (e) {
    if (e.message === "401") { showLogin(); return; }
    if (round !== state.round) return;
    $("banner").className = "alarm";
    $("banner").hidden = false;
    $("banner").replaceChildren(el("div", { class: "first" }, word("gone")));
    state.answers = false;
  }
  const period = state.answers ? PERIOD_MS[state.tab] : 2000;
  state.isQuiet = false;
  if (period > 0) state.timer = setTimeout(() => { state.isQuiet = true; if (document.hidden) { document.addEventListener("visibilitychange", refresh, { once: true }); } else refresh(); }, period);
}

function onHash() {
  const name = location.hash.slice(1);
  const tab = TABS.includes(name) ? name : "now";
  if (tab !== state.tab) state.filter = "";
  state.tab = tab;
  showTabs();
  if (state.session) refresh();
}

async function start() {
  language.start();
  $("language").onclick = () => { language.set(1 - language.index); showTabs(); if (state.session) refresh(); else showLogin(); };
  $("logout").onclick = async () => { await ask("logout", { all: 1 }); showLogin(); };
  window.addEventListener("hashchange", onHash);
  onHash();
  const answer = await ask("session").catch(() => ({ status: 0 }));
  if (answer.status !== 200 || answer.data.user === "") { showLogin(); return; }
  state.session = answer.data;
  showTabs();
  await learnReports();
  refresh();
}

start();
