#pragma once

#include <ulexite/base/standard.hpp>

#include <string_view>

namespace ulexite::detail {

// The rest of the inspector's script: it asks /dump.json and draws it. Its words are those of the text dump.
inline constexpr std::string_view inspector_script = R"html(
const words = { fresh: "not started yet", ready: "could run", running: "runs" };
const history = { fibers: [], dispatches: [], spawned: [], queued: [] };
const stuckFrames = new Map();  // by stuckKey: asked for once, because the thread is interrupted for it
let last = null, latest = null, paused = false;

const stuckKey = worker => [worker.index, worker.dispatches, worker.runs ? worker.runs.id : 0].join();
const age = ms => ms < 7200000 ? time(ms) : ms < 172800000 ? Math.floor(ms / 3600000) + " h" : Math.floor(ms / 86400000) + " days";

// As in a text dump: without the innermost frames, which are the library's path into a wait, and without endless names.
const shorten = frame => frame.length > 160 ? frame.slice(0, 120) + "..." + (frame.match(/ \([^(]*$/) || [""])[0] : frame;
function framesOf(frames) {
  const first = frames.findIndex((frame, i) => !frame.startsWith("ulexite::detail::") || i + 1 === frames.length);
  return frames.map((frame, i) => String(i).padStart(3) + "  " + shorten(frame)).slice(Math.max(first, 0)).join("\n");
}

function drawProcess(dump) {
  const awake = dump.workers.filter(worker => !worker.sleeps).length;
  find("program").textContent = dump.program;
  find("process").textContent = `pid ${dump.pid}, ${age(dump.age_ms)} old, ${dump.workers.length} workers (${dump.workers.length - awake} asleep)`;
  document.title = (dump.findings.length ? `(${dump.findings.length}) ` : "") + dump.program + " - ulexite inspector";
  find("trace").textContent = dump.tracing ? "the running trace" : "record a trace (1 s)";
  find("trace").href = dump.tracing ? "trace" : "trace?ms=1000";
}

function drawStuck(worker) {
  const key = stuckKey(worker), frames = stuckFrames.get(key), details = make("details");
  if (!open.has("closed " + key)) details.open = true;
  details.ontoggle = () => details.open ? open.delete("closed " + key) : open.add("closed " + key);
  const again = make("button", "take it again");
  again.onclick = () => { stuckFrames.delete(key); ask(); };
  details.append(make("summary", "backtrace"), make("pre", !frames ? "its thread is asked" : frames.length ? framesOf(frames)
    : "no backtrace: its thread does not answer SIGURG, or the program handles that"), again);
  return details;
}

// The first findings are the stuck workers.
function drawFindings(dump) {
  const stuck = dump.workers.filter(worker => worker.stuck);
  if (dump.fibers_unseen) dump.findings.push("The fibers cannot be looked at: this kernel refuses membarrier(2).");
  find("findings").replaceChildren(...dump.findings.map((text, i) => {
    const bad = i < stuck.length || text.startsWith("circle:"), box = make("div", undefined, "finding" + (bad ? " bad" : ""));
    const head = text.match(/^(worker \d+ has not switched for [\d.]+ \w+|circle:|fiber #\d+( "[^"]*")? holds \S+ ("[^"]*"|\S+)|)/)[0].replace(/,$/, "");
    const sentence = make("p");
    sentence.append(make("b", head), text.slice(head.length));
    box.append(sentence);
    if (i < stuck.length) box.append(drawStuck(stuck[i]));
    return box;
  }));
  const told = dump.findings.length + (dump.findings.length === 1 ? " finding" : " findings");
  if (find("told").textContent !== told) find("told").textContent = told;  // read aloud: only if it is news
  if (!dump.findings.length) find("findings").append(make("p", "Nothing found: no stuck worker, no circle of waits, no mutex that others wait for.", "calm"));
}

function plot(svg, values) {
  if (!values.length) return;
  const most = Math.max(1, ...values), step = 119 / Math.max(29, values.length - 1), x = i => 119 - step * (values.length - 1 - i);
  const points = values.map((value, i) => x(i) + "," + (32 - value / most * 28)).join(" ");
  svg.innerHTML = "<polygon/><polyline/>";
  svg.firstChild.setAttribute("points", `${x(0)},34 ${points} 119,34`);
  svg.lastChild.setAttribute("points", points);
}

function drawNumbers(dump, seconds) {
  const rate = name => last ? Math.max(0, (dump[name] - last[name]) / seconds) : NaN;
  const queued = dump.queued_outside + dump.workers.reduce((sum, worker) => sum + worker.queued, 0);
  const rows = [["fibers", dump.fibers_live, "fibers"], ["dispatches", rate("dispatches"), "dispatches a second"],
    ["spawned", rate("fibers_spawned"), "spawned a second"], ["queued", queued, `queued, ${count(dump.queued_outside)} in the shared queue`]];
  const place = find("numbers");
  if (!place.children.length)
    for (const [key] of rows) {
      const box = make("div", undefined, "number"), svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("viewBox", "0 0 119 34");
      svg.setAttribute("preserveAspectRatio", "none");
      box.append(make("b"), make("span", "", "dim"), svg);
      box.id = "number-" + key;
      place.append(box);
    }
  for (const [key, value, label] of rows) {
    if (!isNaN(value)) history[key].push(value);
    if (history[key].length > 120) history[key].shift();
    const box = find("number-" + key);
    box.querySelector("b").textContent = isNaN(value) ? "-" : count(Math.round(value));
    box.querySelector("span").textContent = label;
    plot(box.querySelector("svg"), history[key]);
  }
}

// "to receive from channel", without the object of the wait.
const kindOf = group => group.state !== "waiting" ? words[group.state]
  : "waits " + group.waits.replace(/, (full with \d+ values?|at most until its time is over)/g, "").replace(/ (0x[0-9a-f]+|\d+ \(.*\)|#\d+.*)$/, "");

function drawKinds(dump) {
  const sums = new Map();
  for (const group of dump.groups) sums.set(kindOf(group), (sums.get(kindOf(group)) || 0) + group.count);
  let rows = [...sums].sort((a, b) => b[1] - a[1]);
  const others = rows.splice(5).reduce((sum, row) => sum + row[1], dump.left_out);
  if (others) rows.push(["other", others]);
  find("bar").replaceChildren(...rows.map(([kind, n], i) => {
    const part = make("i");
    Object.assign(part.style, { flex: n + " 0 0", background: `var(--kind-${i})` });
    part.title = `${count(n)}: ${kind}`;
    return part;
  }));
  find("kinds").replaceChildren(...rows.map(([kind, n], i) => {
    const button = make("button"), swatch = make("i");
    swatch.style.background = `var(--kind-${i})`;
    button.append(swatch, make("b", count(n)), " " + (n > 1 ? kind.replace(/^(wait|run)s/, "$1") : kind));
    button.onclick = () => {
      find("search").value = kind === "other" || find("search").value === kind ? "" : kind;
      drawGroups(latest);
    };
    return button;
  }));
}

function drawWorkers(dump, seconds) {
  find("workers").replaceChildren(...dump.workers.map((worker, i) => {
    const runs = worker.runs, before = last && last.workers[i] ? last.workers[i].dispatches : worker.dispatches;
    const row = make("div", undefined, "worker" + (worker.stuck ? " bad" : runs || !worker.sleeps ? "" : " rests")), does = make("div");
    does.append(make("b", "worker " + worker.index), ": " + (runs ? "runs " + fiber(runs.id, runs.name) +
      (worker.unswitched_ms ? ` for ${time(worker.unswitched_ms)} without a switch` : "") : worker.sleeps ? "sleeps" : "looks for work, or runs a job"));
    row.append(does, make("div", `${count(worker.queued)} queued, ${count(Math.round((worker.dispatches - before) / seconds))}/s`, "dim right"));
    row.title = (runs && runs.spawned_at ? "spawned at " + runs.spawned_at + "\n" : "") + count(worker.dispatches) + " dispatches";
    return row;
  }));
}

// Threads in blocking calls, and plain threads that wait.
function drawThreads(dump) {
  const row = (thread, does, where) => {
    const box = make("div", undefined, "worker"), line = make("div");
    line.append(make("b", thread), ": " + does);
    if (where) box.title = "spawned at " + where;
    box.append(line);
    return box;
  };
  const rows = [...dump.blocking_calls.map(call => row("thread " + call.thread,
      `runs a blocking call${call.id ? " of " + fiber(call.id, call.name) : ""} for ${time(call.runs_ms)}`, call.spawned_at)),
    ...dump.waiting_threads.map(each => row("plain thread " + each.thread, `waits ${time(each.waited_ms)} ${each.waits}`))];
  const most = 60;
  if (rows.length > most) rows.splice(most, rows.length, make("div", count(rows.length - most) + " more are in the dump", "dim"));
  find("threads").hidden = find("threads-head").hidden = !rows.length;
  find("threads").replaceChildren(...rows);
}

function stateOf(group) {
  if (group.state !== "waiting") return words[group.state];
  const [most, least] = [group.waited_ms, group.least_waited_ms].map(time);
  return `waits ${most} ${least === most ? "" : `(the least ${least}) `}${group.waits}`;
}

function rowsOf(group) {
  const row = make("tr"), who = make("td"), does = make("td"), trace = make("td");
  const key = ["group", kindOf(group), group.spawned_at, ...group.frames].join("\n");
  who.append(fiber(group.id, group.name));
  const notes = [group.spawned_at && "spawned at " + group.spawned_at.split(" in ")[0], group.spawned_by && "spawned by fiber #" + group.spawned_by,
    group.held_locks && `holds ${group.held_locks} lock` + (group.held_locks > 1 ? "s" : ""), group.stop_requested && "was asked to stop",
    group.coroutine && "a coroutine: no stack while it waits"];
  for (const note of notes) if (note) who.append(make("small", note));
  who.title = [group.spawned_at, group.others.length && "alike: #" + group.others.join(", #")].filter(Boolean).join("\n");
  does.append(make("i", undefined, "dot " + group.state), stateOf(group));
  row.append(make("td", count(group.count), "right" + (group.count > 1 ? "" : " one")), who, does, trace);
  if (!group.frames.length) return [row];
  const button = make("button", group.frames.length + " frames");
  button.setAttribute("aria-expanded", open.has(key));
  button.onclick = () => { open.delete(key) || open.add(key); drawGroups(latest); };
  trace.append(button);
  if (!open.has(key)) return [row];
  const below = make("tr"), frames = make("td", undefined, "frames");
  row.className = "open";
  frames.colSpan = 4;
  frames.append(make("pre", framesOf(group.frames)));
  below.append(frames);
  return [row, below];
}

function drawGroups(dump) {
  const most = 100, wanted = find("search").value.toLowerCase();
  const text = group => [fiber(group.id, group.name), kindOf(group), stateOf(group), group.spawned_at, ...group.frames].join("\n");
  const rows = dump.groups.filter(group => !wanted || text(group).toLowerCase().includes(wanted));
  const fibers = rows.reduce((sum, group) => sum + group.count, 0);
  find("shown").textContent = `${count(fibers)} of ${count(dump.fibers_live)} fibers in ${rows.length} groups` +
    (rows.length > most ? `, of which the first ${most} are shown` : "") + (dump.left_out ? `; ${count(dump.left_out)} more fibers are in other groups` : "");
  find("groups").replaceChildren(...rows.slice(0, most).flatMap(rowsOf));
}

function draw(dump) {
  const now = performance.now(), seconds = last ? (now - last.at) / 1000 : 1;
  latest = dump;
  const stuck = new Set(dump.workers.filter(worker => worker.stuck).map(stuckKey));
  for (const key of stuckFrames.keys()) if (!stuck.has(key)) stuckFrames.delete(key), open.delete("closed " + key);
  for (const worker of dump.workers) if (worker.stuck && asked) stuckFrames.set(stuckKey(worker), worker.frames || []);
  drawProcess(dump);
  drawFindings(dump);
  drawNumbers(dump, seconds);
  drawKinds(dump);
  drawGraph(dump);
  drawWorkers(dump, seconds);
  drawThreads(dump);
  drawGroups(dump);
  last = Object.assign(dump, { at: now });
}

const tell = (text, className) => {
  find("state").textContent = text;
  find("state").className = className || "";
};
const wantsFrames = () => latest && latest.workers.some(worker => worker.stuck && !stuckFrames.has(stuckKey(worker)));
let timer = 0, asked = false, asking = false;

// While text is selected nothing is drawn, because that would end the selection. A dump of many fibers takes a while,
// and costs their program that while; so the page asks less often then.
async function ask() {
  if (asking) return;
  asking = true;
  clearTimeout(timer);
  let soon = false;
  const begin = performance.now(), selects = !getSelection().isCollapsed;
  if (!paused && !document.hidden && !selects) {
    try {
      const stuck = wantsFrames(), answer = await fetch(stuck ? "dump.json?stuck" : "dump.json");
      if (!answer.ok) throw new Error(await answer.text());
      const dump = await answer.json();
      asked = stuck;
      draw(dump);
      soon = wantsFrames();
      tell("live", "live");
    } catch (lost) {
      tell("no answer: " + lost.message, "lost");
    }
  } else if (selects && !paused) {
    tell("stands while text is selected");
  }
  asking = false;
  timer = setTimeout(ask, soon ? 0 : Math.max(1000, 4 * (performance.now() - begin)));
}

find("search").oninput = () => latest && drawGroups(latest);
find("pause").onclick = () => {
  paused = !paused;
  find("pause").textContent = paused ? "go on" : "pause";
  tell(paused ? "paused" : "asks");
  if (!paused) ask();
};
document.onvisibilitychange = () => document.hidden || ask();
window.onresize = () => latest && drawGraph(latest);
ask();
)html";

}  // namespace ulexite::detail
