// SPDX-License-Identifier: PostgreSQL
// charts.js: charts and the picture of the servers, as SVG made here.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes, ...children) {
  const e = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes || {})) e.setAttribute(key, value);
  for (const child of children) e.append(child);
  return e;
}

function short(n) {
  if (n === 0) return "0";
  const size = Math.abs(n);
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (size >= unit) return (n / unit).toFixed(size >= 100 * unit ? 0 : 1).replace(/\.0$/, "") + letter;
  return size >= 100 ? n.toFixed(0) : size >= 10 ? n.toFixed(1).replace(/\.0$/, "") : n.toFixed(2).replace(/\.?0+$/, "");
}

// The next of 1, 2, 5, 10, 20 ... above.
function roundUp(n) {
  if (!(n > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(n));
  return [1, 2, 5, 10].map((k) => k * power).find((k) => k >= n);
}

// times: seconds; lines: [{name, values}]; a value of null is a gap.
function chart(title, times, lines) {
  const W = 390, H = 160, L = 46, R = 8, T = 8, B = 22;
  const last = times.length - 1;
  const span = Math.max(1, (times[last] || 0) - (times[0] || 0));
  const max = roundUp(Math.max(0, ...lines.flatMap((l) => l.values.filter((v) => v !== null))));
  const x = (t) => L + (W - L - R) * (t - times[0]) / span;
  const y = (v) => T + (H - T - B) * (1 - v / max);
  const image = svg("svg", { class: "chart", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": title });
  for (const part of [0, 0.5, 1]) {
    image.append(svg("line", { class: "axis", x1: L, x2: W - R, y1: y(max * part), y2: y(max * part) }));
    image.append(svg("text", { x: L - 6, y: y(max * part) + 4, "text-anchor": "end" }, short(max * part)));
  }
  for (const part of [0, 0.5, 1]) {
    const t = (times[0] || 0) + span * part;
    const at = new Date(t * 1000).toLocaleTimeString(language.index ? "ja" : "en-GB", { hour: "2-digit", minute: "2-digit", second: span < 900 ? "2-digit" : undefined });
    if (times.length > 1)
      image.append(svg("text", { x: x(t), y: H - 6, "text-anchor": part === 0 ? "start" : part === 1 ? "end" : "middle" }, at));
  }
  lines.forEach((line, n) => {
    let d = "";
    let pen = "M";
    line.values.forEach((v, i) => {
      if (v === null) { pen = "M"; return; }
      d += `${pen}${x(times[i]).toFixed(1)} ${y(v).toFixed(1)}`;
      pen = "L";
    });
    image.append(svg("path", { class: `l${n % 6}`, d: d || "M0 0" }));
  });
  return image;
}

// nodes: rows of SHOW POOL_NODES. Clients, pgpool, and the servers, with who replicates from whom.
function picture(nodes) {
  const narrow = window.innerWidth < 720;
  const W = narrow ? 350 : 980, step = 96, top = 16;
  const boxH = 76;
  const tall = step * (nodes.length - 1) + boxH;
  const H = narrow ? 120 + tall : Math.max(120, top * 2 + tall);
  const image = svg("svg", { class: "picture", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": word("servers") });
  const boxX = narrow ? 70 : 560, boxW = narrow ? 270 : 400;
  const hub = narrow ? { x: 35, y: 40 } : { x: 230, y: H / 2 };
  const firstY = narrow ? 110 : (H - tall) / 2;
  if (!narrow) image.append(svg("rect", { class: "box note", x: hub.x - 70, y: hub.y - 38, width: 140, height: 76, rx: 12 }));
  else image.append(svg("rect", { class: "box note", x: 5, y: 10, width: 120, height: 60, rx: 12 }));
  const label = narrow ? { x: 65, y: 45 } : { x: hub.x, y: hub.y + 5 };
  nodes.forEach((n, i) => {
    const y = firstY + i * step;
    const lives = n.status === "up" || n.status === "waiting";
    const edge = narrow ? `M${hub.x} 70 V${y + boxH / 2} H${boxX}` :
      `M${hub.x + 70} ${hub.y} C${hub.x + 200} ${hub.y} ${boxX - 130} ${y + boxH / 2} ${boxX} ${y + boxH / 2}`;
    image.append(svg("path", { class: lives ? "edge lives" : "edge", d: edge, "stroke-dasharray": lives ? "" : "4 5",
      "stroke-width": lives ? 1.5 + 4 * (n.lb_weight || 0) : 1.5 }));
  });
  nodes.forEach((n, i) => {
    const y = firstY + i * step;
    const lives = n.status === "up";
    const isMain = n.role === "primary" || n.role === "main";
    image.append(svg("rect", { class: "box " + (lives ? isMain ? "good" : "" : n.status === "waiting" ? "note" : "alarm"), x: boxX, y, width: boxW, height: boxH, rx: 12 }));
    image.append(svg("text", { class: "name", x: boxX + 16, y: y + 24 }, `${n.node_id}  ${clip(n.hostname, narrow ? 20 : 34)}:${n.port}`));
    image.append(svg("text", { x: boxX + 16, y: y + 44 }, [word(n.role), statusWord(n.status), n.replication_sync_state && n.replication_sync_state !== "" ? n.replication_sync_state : ""].filter(Boolean).join(" · ")));
    const lag = isMain ? "" : `${word("lag")} ${lagText(n)} · `;
    const reads = `${lag}${word("reads")} ${Math.round((n.lb_weight || 0) * 100)} %`;
    image.append(svg("text", { x: boxX + 16, y: y + 63 }, lives || n.status === "waiting" ? reads : `${word("since")} ${n.last_status_change}`));
  });
  image.append(svg("text", { class: "name", x: label.x, y: label.y, "text-anchor": "middle" }, "pgpool"));
  if (!narrow) {
    image.append(svg("path", { class: "edge lives", d: `M40 ${hub.y} H${hub.x - 70}` }));
    image.append(svg("text", { x: 40, y: hub.y - 10 }, word("clients")));
  }
  return image;
}

function clip(text, n) {
  return text.length > n ? text.slice(0, n - 1) + "…" : text;
}

function statusWord(status) {
  return word(status === "waiting" ? "waitingState" : status);
}

function lagText(n) {
  const text = String(n.replication_delay || "0");
  return /^\d+$/.test(text) ? short(Number(text)) + (text === "0" ? "" : "B") : text;
}
