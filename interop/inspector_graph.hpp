#pragma once

#include <ulexite/base/standard.hpp>

#include <string_view>

namespace ulexite::detail {

// The part of the inspector's script that draws who waits for whom: words, layout, and boxes. The dump has fibers that
// are alike as one edge with a count, so there are few boxes however many fibers wait. Each waits for one other, so a
// part of the graph is a tree below a holder, or a circle with trees.
inline constexpr std::string_view inspector_graph = R"html(
const find = id => document.getElementById(id);
const make = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};
const count = n => n.toLocaleString("en");
const time = ms => ms < 1000 ? ms + " ms" : ms < 120000 ? (ms / 1000).toFixed(1) + " s" : Math.floor(ms / 60000) + " min";
const fiber = (id, name) => id === 0 ? "a plain thread, or a fiber of another runtime" : "fiber #" + id + (name ? ` "${name}"` : "");
const placeOf = spawned => (spawned || "").split(" in ")[0].split("/").pop();

// What is open stays open when the page is drawn again.
const open = new Set();
const keepOpen = (key, details) => {
  details.open = open.has(key);
  details.ontoggle = () => details.open ? open.add(key) : open.delete(key);
  return details;
};

const size = { width: 250, height: 62, gap: 44, row: 80, most: 8, mostInRing: 12 };

// The holders that wait for nobody, and the circles, each with its waiters below it. A long circle is not all in the
// dump. Its pieces are one box.
function partsOf(edges) {
  const nodes = new Map();
  const node = (id, what, facts) => {
    const key = id || "thread " + what;
    if (!nodes.has(key)) nodes.set(key, { key, waiters: [] });
    return Object.assign(nodes.get(key), facts);
  };
  for (const edge of edges) {
    const holder = node(edge.holder, edge.waits, { title: fiber(edge.holder, edge.holder_name), names: [edge.holder_name], count: edge.holder_count,
      state: edge.holder_state || "", place: edge.holder_spawned_at });
    const waiter = node(edge.waiter, "", { title: fiber(edge.waiter, edge.waiter_name), names: edge.waiters.map(each => each.name), count: edge.count, holder, red: edge.in_circle,
      state: `waits ${time(edge.waited_ms)} ${edge.waits}`, place: edge.waiter_spawned_at, list: edge.waiters });
    holder.waiters.push(waiter);
  }
  const parts = [], seen = new Set();
  let incomplete = false;
  for (const each of nodes.values()) {
    each.waiters = fewOf(each.waiters.filter(waiter => !waiter.red), each.key);
    if (!each.holder && each.waiters.length) parts.push({ roots: [each] });
    if (!each.red || seen.has(each)) continue;
    const ring = [];
    let at = each;
    for (; at && !seen.has(at); at = at.holder) ring.push(at), seen.add(at);
    if (at !== each) { incomplete = true; continue; }
    const left = ring.length - size.mostInRing;
    if (left > 0) ring.splice(size.mostInRing / 2, left + 1, { key: "ring " + each.key, waiters: [], red: true, count: 1, title: `${left + 1} more fibers`, state: "each waits for the next" });
    parts.push({ roots: ring, ring: true, size: ring.length + Math.max(left, 0) });
  }
  if (incomplete) parts.unshift({ roots: [{ key: "incomplete", waiters: [], red: true, count: 1, title: "a circle, too long to draw", state: "the findings name its fibers" }] });
  return parts.sort((a, b) => !!b.ring - !!a.ring);
}

function fewOf(waiters, key) {
  waiters.sort((a, b) => b.count - a.count);
  if (waiters.length <= size.most) return waiters;
  const rest = waiters.splice(size.most - 1);
  waiters.push({ key: "rest " + key, waiters: [], count: rest.reduce((sum, each) => sum + each.count, 0), title: `at ${rest.length} more places`, state: "" });
  return waiters;
}

const depthOf = node => node.waiters.reduce((most, each) => Math.max(most, 1 + depthOf(each)), 0);

// Places a tree in columns: its root at x, its waiters further to that side. Returns the rows that it takes.
function spread(node, x, row, side) {
  let rows = 0;
  for (const each of node.waiters) rows += spread(each, x + side * (size.width + size.gap), row + rows, side);
  Object.assign(node, { x, y: (row + (Math.max(rows, 1) - 1) / 2) * size.row, width: size.width, side });
  return Math.max(rows, 1);
}

// The same as an indented list, for narrow screens. Returns the next row.
function indent(node, x, row, most) {
  Object.assign(node, { x, y: row * size.row, width: Math.min(most - x, 340), side: 0 });
  return node.waiters.reduce((next, each) => indent(each, x + 22, next, most), row + 1);
}

// Returns the width and height of a part. The circle goes down on its left side, and up on its right side, with the
// other waiters around it.
function place(part, most) {
  const depth = Math.max(...part.roots.map(depthOf)), column = size.width + size.gap, middle = 84;
  const width = (depth + 1) * column - size.gap;
  part.wide = (part.ring ? 2 * width + middle : width) <= most;
  if (!part.wide) {
    const rows = part.roots.reduce((row, root) => indent(root, part.ring ? 34 : 0, row, most), 0);
    return [Math.min(most, 374), rows * size.row];
  }
  if (!part.ring) return [width, spread(part.roots[0], depth * column, 0, -1) * size.row];
  const half = Math.ceil(part.roots.length / 2);
  const sides = [part.roots.slice(0, half), part.roots.slice(half).reverse()];
  const rows = sides.map((side, i) => side.reduce((row, root) => row + spread(root, width - size.width + i * (size.width + middle), row, i ? 1 : -1), 0));
  const high = Math.max(...rows);
  const lower = (node, by) => { node.y += by; node.waiters.forEach(each => lower(each, by)); };
  sides.forEach((side, i) => side.forEach(root => lower(root, (high - rows[i]) / 2 * size.row + 34)));
  return [2 * width + middle, high * size.row + 54];
}

function lineOfTree(waiter, holder) {
  const y = waiter.y + size.height / 2, to = holder.y + size.height / 2;
  if (!waiter.side) return `M${waiter.x} ${y}H${waiter.x - 12}V${holder.y + size.height + 1}`;
  const from = waiter.side < 0 ? waiter.x + waiter.width : waiter.x, end = waiter.side < 0 ? holder.x : holder.x + holder.width;
  return `M${from} ${y}C${(from + end) / 2} ${y} ${(from + end) / 2} ${to} ${end} ${to}`;
}

function lineOfRing(from, to, last, wide) {
  const low = from.y + size.height;
  if (!wide) {
    const lane = from.x - (last ? 26 : 13), y = from.y + size.height * .65, end = to.y + size.height * .35;
    return `M${from.x} ${y}H${lane}V${end}H${to.x - 1}`;
  }
  const [a, b] = [from, to].map(each => each.x + each.width / 2);
  if (a === b) return from.y < to.y ? `M${a} ${low}V${to.y - 1}` : `M${a} ${from.y}V${to.y + size.height + 1}`;
  if (a < b) return `M${a} ${low}C${a} ${low + 42} ${b} ${to.y + size.height + 42} ${b} ${to.y + size.height + 1}`;
  return `M${a} ${from.y}C${a} ${from.y - 42} ${b} ${to.y - 42} ${b} ${to.y - 1}`;
}

// The name that all of them have.
const nameOfMany = ([first, ...others]) => first && others.every(each => each === first) ? `fibers "${first}"` : "fibers";

function boxOf(node) {
  const many = node.count > 1, box = make(node.list && many ? "details" : "div", undefined, "node" + (many ? " many" : "") + (node.red ? " red" : ""));
  Object.assign(box.style, { left: node.x + "px", top: node.y + "px", width: node.width + "px" });
  const face = make(box.localName === "details" ? "summary" : "div", undefined, "face"), name = make("span");
  if (many) name.append(make("em", count(node.count)), " ");
  name.append(make("b", many && node.names ? nameOfMany(node.names) : node.title));
  face.append(name, make("span", node.state, "dim"), make("span", node.place && "spawned at " + placeOf(node.place), "dim"));
  face.title = [node.title, node.state, node.place && "spawned at " + node.place].filter(Boolean).join("\n");
  box.append(face);
  if (box.localName !== "details") return box;
  const list = make("div", undefined, "list"), more = node.count - node.list.length;
  list.append(...node.list.map(each => make("div", `${fiber(each.id, each.name)}: waits ${time(each.waited_ms)}`)));
  if (more > 0) list.append(make("div", `and ${count(more)} more alike`, "dim"));
  box.append(list);
  return keepOpen("node " + node.place + node.holder.key, box);
}

function drawPart(part, most) {
  const [width, height] = place(part, most), made = make("div", undefined, "part" + (part.ring ? " ring" : ""));
  Object.assign(made.style, { width: width + "px", height: height + "px", flexBasis: part.ring ? width + "px" : "" });
  const lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  lines.setAttribute("width", width);
  lines.setAttribute("height", height);
  const line = (d, red) => {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", d);
    path.setAttribute("marker-end", red ? "url(#red-head)" : "url(#head)");
    if (red) path.setAttribute("class", "red");
    lines.append(path);
  };
  made.append(lines);
  const draw = node => {
    for (const each of node.waiters) line(lineOfTree(each, node)), draw(each);
    made.append(boxOf(node));
  };
  part.roots.forEach(draw);
  if (!part.ring) return made;
  part.roots.forEach((root, i) => line(lineOfRing(root, part.roots[(i + 1) % part.roots.length], i + 1 === part.roots.length, part.wide), true));
  if (part.wide) {
    const label = make("div", `a circle of ${part.size} waits`, "middle");
    Object.assign(label.style, { left: width / 2 - 42 + "px", width: "84px", top: (height - 54) / 2 + 10 + "px" });
    made.append(label);
  }
  return made;
}

function drawGraph(dump) {
  const graph = find("graph"), most = graph.clientWidth, parts = partsOf(dump.edges), shown = parts.slice(0, 12);
  find("legend").hidden = !parts.length;
  graph.replaceChildren(...(parts.length ? shown.map(part => drawPart(part, most))
    : [make("span", "No fiber waits for another at a mutex or a join.", "dim")]));
  if (parts.length > shown.length) graph.append(make("span", `and ${parts.length - shown.length} more holders with their waiters`, "dim"));
}
)html";

}  // namespace ulexite::detail
