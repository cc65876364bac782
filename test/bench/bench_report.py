# SPDX-License-Identifier: PostgreSQL
"""bench_report: what test/bench/compare writes: Markdown, a chart and the raw samples as CSV."""

import csv
import dataclasses
import datetime
import os
import platform
import shlex
from statistics import median

import bench_svg
from bench_peers import TITLES

HANDFUL = 10


def spread(values, form="{:,.0f}"):
    """median (min–max)"""
    if not values:
        return "–"
    if len(values) == 1:
        return form.format(values[0])
    return (form.format(median(values)) + " (" + form.format(min(values)) + "–" +
            form.format(max(values)) + ")")


def pick(samples, **want):
    return [s for s in samples if all(getattr(s, k) == v for k, v in want.items())]


def ratios(samples, mode, clients, peer, field, ours="ours"):
    """ours / peer, round by round, so that what disturbs one round disturbs both sides of it."""
    mine = {s.round: getattr(s, field) for s in pick(samples, mode=mode, clients=clients,
                                                     peer=ours)}
    other = {s.round: getattr(s, field) for s in pick(samples, mode=mode, clients=clients,
                                                      peer=peer)}
    return [mine[r] / other[r] for r in sorted(mine) if other.get(r)]


def cpu_model():
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def value_table(samples, modes, clients, peers, field, form):
    rows = []
    for mode in modes:
        cells = [spread([getattr(s, field) for s in
                         pick(samples, mode=mode, clients=clients, peer=p)], form) for p in peers]
        rows.append([mode, *cells])
    return table(["mode", *[TITLES[p] for p in peers]], rows)


def is_ours(peer):
    return peer.startswith("ours")


def ratio_table(samples, modes, clients, peers):
    pairs = [(o, p) for o in peers if is_ours(o) for p in peers if not is_ours(p)]
    header, rows = ["mode"], []
    for o, p in pairs:
        mine = "ours" if o == "ours" else TITLES[o]
        header.append(f"tps: {mine} / {TITLES[p]}")
        if p != "direct":
            header.append(f"CPU: {mine} / {TITLES[p]}")
    for mode in modes:
        row = [mode]
        for o, p in pairs:
            row.append(spread(ratios(samples, mode, clients, p, "tps", o), "{:.2f}"))
            if p != "direct":
                row.append(spread(ratios(samples, mode, clients, p, "cpu_us", o), "{:.2f}"))
        rows.append(row)
    return table(header, rows)


def latency_part(samples, modes, clients, peers):
    """p50 and p99 where they were measured."""
    if not any(s.p50_us for s in pick(samples, clients=clients)):
        return []

    def cell(mode, peer):
        got = [s for s in pick(samples, mode=mode, clients=clients, peer=peer) if s.p50_us]
        if not got:
            return "–"
        p50, p99 = median(s.p50_us for s in got), median(s.p99_us for s in got)
        return f"{p50 / 1000:,.2f} / {p99 / 1000:,.2f} ({p99 / p50:.1f})"

    return ["Time of a transaction, ms: p50 / p99 (p99 over p50):", "",
            table(["mode", *[TITLES[p] for p in peers]],
                  [[mode, *[cell(mode, p) for p in peers]] for mode in modes]), ""]


def idle_section(results):
    if not results:
        return []
    rows = [[TITLES[r.peer] + ("" if r.nodes == 1 else f", balancing over {r.nodes} nodes"),
             r.pool_mode, f"{r.clients:,}", f"{r.logged_in:,.0f}", f"{r.queried:,.0f}",
             f"{r.used:,.0f}", f"{r.large:,.0f}", f"{r.base / 1024:,.0f} kB",
             f"{(r.base + r.queried * r.clients) / 1024:,.0f} kB"] for r in results]
    return ["## Memory per idle client", "",
            "PSS of all processes of the proxy, difference divided by the number of clients; no TLS;",
            "behind it the fake server of this folder. Used: two SETs, a prepared statement and a",
            "transaction later; large: and a query of 200 kB with a result of 300 kB. In session",
            "pooling a client that ran a query",
            "holds a server link. PgBouncer gives one at the first query, so its first figure has no",
            "server side in it; pgpool attaches one at login. Socket buffers of the kernel are in",
            "neither figure. pgpool-II forks one process per client beforehand: most of what a client",
            "costs it is in the column of the proxy before.", "",
            table(["proxy", "pool mode", "clients", "bytes after login", "after one query", "used",
                    "large", "proxy before", "proxy with all"], rows), ""]


def failures_section(samples, failures):
    lost = [s for s in samples if s.failed]
    lines = [f"- {TITLES[s.peer]}, {s.mode}, {s.clients} clients, round {s.round}: "
             f"{s.failed} failed transactions" for s in lost]
    lines += [f"- {line}" for line in failures]
    return ["## Failures", "", *lines, ""] if lines else []


def opened_section(samples):
    """What a pool that is full should not do. One or two are of who counts."""
    many = [s for s in samples if s.opened > HANDFUL and s.peer != "direct" and s.mode != "connect"]
    if not many:
        return []
    return ["## Server connections opened", "",
            f"Runs in which more than {HANDFUL} were opened, though the pools had been filled before:", "",
            *[f"- {TITLES[s.peer]}, {s.mode}, {s.clients} clients, round {s.round}: {s.opened}" for s in many], ""]


def servers_words(run):
    if run.nodes == 1:
        return ("one server (pgpool and pgpool-II: streaming_replication with one node, no load "
                "balancing)")
    return (f"a primary of weight 0 and {run.nodes - 1} standbys of equal weight (pgpool and pgpool-II: "
            "streaming_replication, load balancing; PgBouncer, which routes nothing: all to the primary, or "
            "its connections to the standbys in turn)")


def shares_section(run):
    if not run.shares:
        return []
    rows = [[TITLES[peer], mode, *[f"{part:.2%}" for part in parts]] for peer, mode, parts in run.shares]
    return ["## Shares", "",
            "Selects by node, of a run of a fixed number by ten clients, as the servers count them: by reads of the",
            "table that they are from (`pg_stat_user_tables`), which nothing else reads:", "",
            table(["proxy", "mode", "primary", *[f"standby {n}" for n in range(1, run.nodes)]], rows), ""]


def markdown(run, samples, idle, failures, chart):
    """The whole report."""
    out = [f"# {run.title}", "",
           f"Written by `{shlex.join(run.command)}` on {datetime.date.today()}.", "",
           f"Machine: {os.cpu_count()} × {cpu_model()}, Linux {platform.release()}. The server, the "
           "load generator and the proxies share it, over loopback.", "",
           "Versions: " + "; ".join(run.versions) + ".", "",
           f"Settings: {run.pooling}, trust authentication, no TLS, {servers_words(run)}, scale {run.scale}; "
           f"{run.seconds} s per run, {run.rounds} rounds, peers alternating within each mode, "
           "started anew for each round, and the first of one round the last of the next. Figures are medians (min–max); ratios are taken round by round. CPU is user and "
           "system time of all processes of the proxy, exited ones too, divided by the "
           "transactions done.", ""]
    if chart:
        out += [f"![chart]({os.path.basename(chart)})", ""]
    proxies = [p for p in run.peers if p != "direct"]
    for clients in run.clients if samples else []:
        modes = [m for m in run.modes if pick(samples, mode=m, clients=clients)]
        out += [f"## {clients} clients", "", "Transactions per second:", "",
                value_table(samples, modes, clients, run.peers, "tps", "{:,.0f}"), "",
                "CPU of the proxy per transaction, µs:", "",
                value_table(samples, modes, clients, proxies, "cpu_us", "{:,.1f}"), "",
                *latency_part(samples, modes, clients, run.peers),
                "Memory of the proxy (PSS, MB, first round):", "",
                value_table(scaled(samples), modes, clients, proxies, "pss", "{:,.1f}"), ""]
        if any(map(is_ours, run.peers)) and not all(map(is_ours, run.peers)):
            out += ["Ratios (tps: more is better for us; CPU: less is):", "",
                    ratio_table(samples, modes, clients, run.peers), ""]
    out += shares_section(run) + idle_section(idle) + opened_section(samples) + failures_section(samples, failures)
    return "\n".join(out)


def scaled(samples):
    """Those whose memory was looked at, in MB."""
    return [dataclasses.replace(s, pss=s.pss / 1048576) for s in samples if s.pss is not None]


def chart(run, samples):
    """Throughput and CPU relative to one peer, PgBouncer when it took part."""
    base = "pgbouncer" if "pgbouncer" in run.peers else run.peers[0]
    parts, top = bench_svg.legend([TITLES[p] for p in run.peers], 50, 22), 30
    for clients in run.clients:
        for field, name, form in (("tps", "transactions per second", "{:,.0f}"),
                                  ("cpu_us", "CPU µs per transaction", "{:,.1f}")):
            def middle(mode, peer):
                got = [getattr(s, field) for s in
                       pick(samples, mode=mode, clients=clients, peer=peer)]
                return median(got) if got else None

            def relative(mode, peer):
                mine, unit = middle(mode, peer), middle(mode, base)
                return mine / unit if mine and unit else None

            def label(mode, peer):
                return form.format(middle(mode, peer))

            title = f"{clients} clients: {name} ({TITLES[base]} = 1)"
            modes = [m for m in run.modes if pick(samples, mode=m, clients=clients)]
            parts += bench_svg.bar_panel(title, modes, run.peers, relative, label, top)
            top += 240
    return bench_svg.document(900, top + 10, parts)


def write_csv(path, samples):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow([f.name for f in dataclasses.fields(samples[0])])
        for s in samples:
            out.writerow([f"{v:.3f}" if isinstance(v, float) else v
                          for v in dataclasses.astuple(s)])


def write(run, samples, idle, failures):
    """Writes OUT.md, OUT.svg and OUT.csv; returns the text."""
    stem = os.path.splitext(run.out)[0]
    os.makedirs(os.path.dirname(os.path.abspath(run.out)), exist_ok=True)
    picture = None
    if samples:
        picture = stem + ".svg"
        with open(picture, "w") as file:
            file.write(chart(run, samples))
        write_csv(stem + ".csv", samples)
    words = markdown(run, samples, idle, failures, picture)
    with open(run.out, "w") as file:
        file.write(words)
    return words
