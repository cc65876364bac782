// SPDX-License-Identifier: PostgreSQL
// manual.js: the search of the manual, over search_index.js, which was made with the pages. Nothing is fetched.
"use strict";
const MOST = 20;

// Sections that have all words; a word in a heading counts more than one in the text.
function find(words) {
  const hits = [];
  for (const section of manualIndex) {
    const title = (section.title + " " + section.chapter).toLowerCase();
    const text = section.text.toLowerCase();
    let score = 0;
    for (const word of words) {
      const here = (section.title.toLowerCase() === word ? 20 : 0) + (title.includes(word) ? 10 : 0) + (text.includes(word) ? 1 : 0);
      if (here === 0) { score = 0; break; }
      score += here;
    }
    if (score > 0) hits.push({ section, score });
  }
  return hits.sort((a, b) => b.score - a.score).slice(0, MOST).map((hit) => hit.section);
}

function show() {
  const list = document.getElementById("found");
  const words = document.getElementById("search").value.toLowerCase().split(/\s+/).filter((word) => word.length > 0);
  list.replaceChildren();
  list.hidden = words.length === 0;
  if (list.hidden) return;
  const sections = find(words);
  for (const section of sections) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const where = document.createElement("small");
    link.href = section.page + "#" + section.anchor;
    link.textContent = section.title;
    where.textContent = section.chapter;
    item.append(link, where);
    list.append(item);
  }
  if (sections.length === 0) list.textContent = "Nothing found.";
}

// A step through the links that were found; above the first one is the field.
function step(by) {
  const links = [...document.querySelectorAll("#found a")];
  const to = links.indexOf(document.activeElement) + by;
  (links[Math.min(to, links.length - 1)] || document.getElementById("search")).focus();
}

function onKey(event) {
  const field = document.getElementById("search");
  const isFound = event.target === field || event.target.closest("#found") !== null;
  if (event.key === "/" && event.target !== field) field.focus();
  else if (event.key === "ArrowDown" && isFound) step(1);
  else if (event.key === "ArrowUp" && isFound) step(-1);
  else if (event.key === "Enter" && event.target === field && !event.isComposing) document.querySelector("#found a")?.click();
  else return;
  event.preventDefault();
}

document.getElementById("search").addEventListener("input", show);
document.addEventListener("keydown", onKey);
// On a phone the contents are a line that unfolds; the page begins below it.
if (window.matchMedia("(max-width: 50rem)").matches) document.getElementById("contents").open = false;
