#pragma once

#include <ulexite/base/standard.hpp>

#include <string_view>

namespace ulexite::detail {

// The page of inspector.hpp, which asks /dump.json once a second and draws it.
inline constexpr std::string_view inspector_page = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>ulexite inspector</title>
<style>
  :root { --line: #d6d9de; --dim: #667; --bad: #b3261e; --ink: #1b1f24; --fill: #f6f7f9; --blue: #2457c5; }
  body { font: 14px/1.45 system-ui, sans-serif; color: var(--ink); margin: 0 auto; padding: 16px 24px; max-width: 1200px; }
  h1 { font-size: 18px; margin: 0 0 12px; } h2 { font-size: 15px; margin: 22px 0 8px; }
  header { display: flex; justify-content: space-between; align-items: baseline; }
  #state.lost { color: var(--bad); } #state { color: var(--dim); }
  #numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px; }
  .number { background: var(--fill); border: 1px solid var(--line); border-radius: 6px; padding: 8px 12px; }
  .number b { font-size: 20px; font-weight: 600; display: block; font-variant-numeric: tabular-nums; }
  .number span { color: var(--dim); } canvas { width: 100%; height: 36px; display: block; margin-top: 4px; }
  table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: 4px 10px 4px 0; vertical-align: top;
    border-bottom: 1px solid var(--line); } th { color: var(--dim); font-weight: 500; }
  .right.right { text-align: right; font-variant-numeric: tabular-nums; }
  #findings li { color: var(--bad); margin: 2px 0; } input { font: inherit; padding: 4px 8px; width: 320px; }
  button { font: inherit; padding: 4px 10px; } details summary { cursor: pointer; } pre { margin: 6px 0; color: var(--dim);
    font-size: 12px; overflow-x: auto; max-width: 700px; } svg text { font: 12px system-ui, sans-serif; }
</style>
</head>
<body>
<header><h1>ulexite inspector</h1><div><span id="state">asks</span> <button id="pause">pause</button>
  <button id="trace">record a trace (1 s)</button></div></header>
<div id="numbers"></div>
<ul id="findings"></ul>
<h2>Who waits for whom</h2><div id="graph"></div>
<h2>Workers</h2>
<table><thead><tr><th>worker<th>runs<th>for<th class="right">queued<th class="right">dispatches/s</thead><tbody id="workers"></tbody></table>
<h2>Fibers</h2>
<p><input id="search" placeholder="a name, mutex, a file, a function"> <span id="shown"></span></p>
<table><thead><tr><th class="right">count<th>fiber<th>state<th class="right">since<th>spawned at<th>backtrace</thead><tbody id="groups"></tbody></table>
<script>
"use strict";
const find = id => document.getElementById(id);
const make = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
const time = ms => ms < 1000 ? ms + " ms" : ms < 120000 ? (ms / 1000).toFixed(1) + " s" : Math.floor(ms / 60000) + " min";
const fiberName = (id, name) => id === 0 ? "a plain thread, or a fiber of another runtime" : "#" + id + (name ? " " + name : "");
const count = n => n.toLocaleString("en");

const history = { fibers: [], dispatches: [], spawned: [], queued: [] };
let last = null, latest = null, paused = false, open = new Set();

function plot(canvas, values) {
  const box = canvas.getContext("2d"), most = Math.max(1, ...values);
  canvas.width = canvas.clientWidth * 2; canvas.height = 72;
  box.strokeStyle = "#2457c5"; box.lineWidth = 3; box.beginPath();
  values.forEach((value, i) => box.lineTo(i / 119 * canvas.width, 68 - value / most * 62));
  box.stroke();
}

function drawNumbers(dump, seconds) {
  const rate = name => last ? Math.max(0, (dump[name] - last[name]) / seconds) : 0;
  const queued = dump.queued_outside + dump.workers.reduce((sum, worker) => sum + worker.queued, 0);
  const rows = [["fibers", dump.fibers_live, "fibers"], ["dispatches", rate("dispatches"), "dispatches a second"],
    ["spawned", rate("fibers_spawned"), "spawned a second"], ["queued", queued, "wait for a worker"]];
  const place = find("numbers");
  if (!place.children.length)
    for (const [key, , label] of rows) {
      const box = make("div", undefined, "number");
      box.append(make("b"), make("span", label), make("canvas"));
      box.id = "number-" + key;
      place.append(box);
    }
  for (const [key, value] of rows) {
    history[key].push(value);
    if (history[key].length > 120) history[key].shift();
    const box = find("number-" + key);
    box.querySelector("b").textContent = count(Math.round(value));
    plot(box.querySelector("canvas"), history[key]);
  }
}

function drawWorkers(dump, seconds) {
  find("workers").replaceChildren(...dump.workers.map((worker, i) => {
    const row = make("tr"), runs = worker.runs;
    const before = last && last.workers[i] ? last.workers[i].dispatches : worker.dispatches;
    row.append(make("td", worker.index), make("td", runs ? fiberName(runs.id, runs.name) : worker.sleeps ? "sleeps" : "looks for work, or runs a job"),
      make("td", worker.unswitched_ms ? time(worker.unswitched_ms) : ""), make("td", count(worker.queued), "right"),
      make("td", count(Math.round((worker.dispatches - before) / seconds)), "right"));
    return row;
  }));
}

function drawGroups(dump) {
  const wanted = find("search").value.toLowerCase();
  const rows = dump.groups.filter(group => JSON.stringify(group).toLowerCase().includes(wanted));
  find("shown").textContent = rows.reduce((sum, group) => sum + group.count, 0) + " of " + count(dump.fibers_live) +
    " fibers in " + rows.length + " groups" + (dump.left_out ? ", " + dump.left_out + " more left out" : "");
  find("groups").replaceChildren(...rows.map(group => {
    const row = make("tr"), frames = make("details"), waits = group.state === "waiting";
    frames.append(make("summary", group.frames.length + " frames"), make("pre", group.frames.join("\n")));
    frames.open = open.has(group.id);
    frames.ontoggle = () => frames.open ? open.add(group.id) : open.delete(group.id);
    const trace = make("td");
    if (group.frames.length) trace.append(frames);
    row.append(make("td", count(group.count), "right"), make("td", fiberName(group.id, group.name)),
      make("td", waits ? "waits " + group.waits : group.state),
      make("td", waits ? time(group.waited_ms) : "", "right"), make("td", (group.spawned_at || "").split(" in ")[0]), trace);
    return row;
  }));
}

function drawGraph(dump) {
  const names = new Map();
  for (const edge of dump.edges) {
    names.set(edge.waiter, fiberName(edge.waiter, edge.waiter_name));
    names.set(edge.holder, fiberName(edge.holder, edge.holder_name));
  }
  const place = find("graph");
  if (!names.size) return place.replaceChildren(make("span", "No fiber waits for another at a mutex or a join."));
  const svgns = "http://www.w3.org/2000/svg", width = 900, height = Math.min(420, 140 + names.size * 22);
  const svg = document.createElementNS(svgns, "svg");
  const draw = (name, values, text) => {
    const made = document.createElementNS(svgns, name);
    for (const key in values) made.setAttribute(key, values[key]);
    if (text) made.textContent = text;
    svg.append(made);
    return made;
  };
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("width", width);
  const head = draw("marker", { id: "head", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto" });
  head.append(Object.assign(document.createElementNS(svgns, "path")));
  head.firstChild.setAttribute("d", "M0,0 L8,4 L0,8 z");
  const at = new Map([...names.keys()].sort((a, b) => a - b).map((id, i) => {
    const angle = 2 * Math.PI * i / names.size - Math.PI / 2;
    return [id, [width / 2 + (width / 2 - 160) * Math.cos(angle), height / 2 + (height / 2 - 34) * Math.sin(angle)]];
  }));
  for (const edge of dump.edges) {
    const [x1, y1] = at.get(edge.waiter), [x2, y2] = at.get(edge.holder), length = Math.hypot(x2 - x1, y2 - y1) || 1;
    const dx = (x2 - x1) / length * 26, dy = (y2 - y1) / length * 18;
    const line = draw("line", { x1: x1 + dx, y1: y1 + dy, x2: x2 - dx, y2: y2 - dy, stroke: "#667", "marker-end": "url(#head)" });
    const hint = document.createElementNS(svgns, "title");
    hint.textContent = names.get(edge.waiter) + " waits " + edge.waits;
    line.append(hint);
  }
  for (const [id, [x, y]] of at) {
    const text = names.get(id), half = 8 + text.length * 3.6;
    draw("rect", { x: x - half, y: y - 13, width: 2 * half, height: 26, rx: 5, fill: "#f6f7f9", stroke: "#2457c5" });
    draw("text", { x, y: y + 4, "text-anchor": "middle" }, text);
  }
  place.replaceChildren(svg);
}

function draw(dump) {
  const now = performance.now(), seconds = last ? (now - last.at) / 1000 : 1;
  latest = dump;
  drawNumbers(dump, seconds);
  find("findings").replaceChildren(...dump.findings.map(text => make("li", text)));
  drawGraph(dump);
  drawWorkers(dump, seconds);
  drawGroups(dump);
  last = Object.assign(dump, { at: now });
}

async function ask() {
  if (!paused) {
    try {
      const answer = await fetch("dump.json");
      if (!answer.ok) throw new Error(await answer.text());
      draw(await answer.json());
      find("state").textContent = "live";
      find("state").className = "";
    } catch (lost) {
      find("state").textContent = "no answer: " + lost.message;
      find("state").className = "lost";
    }
  }
  setTimeout(ask, 1000);
}

find("search").oninput = () => latest && drawGroups(latest);
find("pause").onclick = () => {
  paused = !paused;
  find("pause").textContent = paused ? "go on" : "pause";
  find("state").textContent = paused ? "paused" : "asks";
};
find("trace").onclick = () => { location.href = "trace?ms=1000"; };
ask();
</script>
</body>
</html>
)html";

}  // namespace ulexite::detail
