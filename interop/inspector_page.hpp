#pragma once

#include <ulexite/base/standard.hpp>
#include <ulexite/interop/inspector_graph.hpp>
#include <ulexite/interop/inspector_script.hpp>

#include <string>
#include <string_view>

namespace ulexite::detail {

// The page of inspector.hpp without its script. It has no other files: the icon is in it, too.
inline constexpr std::string_view inspector_html = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>ulexite inspector</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='7' fill='%231f3a8a'/%3E%3Cg stroke-width='3' stroke-linecap='round' stroke='%23a9c1ff'%3E%3Cpath d='M8 26V15M13.3 26V9M24 26V12'/%3E%3Cpath d='M18.6 26V6' stroke='%23fff'/%3E%3C/g%3E%3C/svg%3E">
<style>
  :root { --page: #fff; --panel: #f6f7f9; --line: #dde1e6; --ink: #1a1f26; --dim: #5b6470; --blue: #2457c5; --fill: #e8eefb;
    --bad: #b3261e; --bad-fill: #fdeeec; --warn: #8a5a00; --warn-fill: #fdf5e2; --good: #1a7f4b;
    --kind-0: #3b6fd4; --kind-1: #2a9d8f; --kind-2: #c98a1b; --kind-3: #9160c9; --kind-4: #c75b7a; --kind-5: #8a929d; }
  @media (prefers-color-scheme: dark) {
    :root { --page: #12151a; --panel: #1b2027; --line: #2e353f; --ink: #e4e8ee; --dim: #9aa4b2; --blue: #7ea6ff; --fill: #1d2a45;
      --bad: #ff8a80; --bad-fill: #341b1c; --warn: #e6b84d; --warn-fill: #2c2412; --good: #56d08b;
      --kind-0: #6f9bff; --kind-1: #4cc2b3; --kind-2: #e0a94a; --kind-3: #b58be6; --kind-4: #e58aa5; --kind-5: #7d8794; } }
  * { box-sizing: border-box; } [hidden] { display: none !important; }
  body { font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 0 auto; padding: 16px 24px 40px;
    max-width: 1280px; overflow-wrap: anywhere; }
  h1 { font-size: 20px; line-height: 1.2; margin: 0; } h2 { font-size: 15px; margin: 28px 0 10px; }
  .dim, small { color: var(--dim); font-size: 12px; } .right { text-align: right; font-variant-numeric: tabular-nums; }
  header { display: flex; flex-wrap: wrap; gap: 10px 14px; align-items: center; margin-bottom: 16px; }
  header svg { width: 36px; height: 36px; flex: none; } #who { flex: 1 1 180px; }
  nav { display: flex; flex-wrap: wrap; gap: 6px 14px; align-items: center; }
  a { color: var(--blue); text-decoration: none; } a:hover { text-decoration: underline; }
  button, a.button, input { font: inherit; color: inherit; background: var(--panel); border: 1px solid var(--line); border-radius: 6px;
    padding: 4px 12px; } button, summary { cursor: pointer; } button:hover, a.button:hover { border-color: var(--blue); text-decoration: none; }
  :focus-visible { outline: 2px solid var(--blue); outline-offset: 1px; }
  #state { color: var(--dim); } #state::before { content: "●"; margin-right: 5px; color: var(--dim); }
  #state.live::before { color: var(--good); } #state.lost, #state.lost::before { color: var(--bad); }
  .finding { border-left: 4px solid var(--warn); background: var(--warn-fill); border-radius: 6px; padding: 8px 14px; margin: 6px 0; }
  .finding b { color: var(--warn); } .finding.bad { border-color: var(--bad); background: var(--bad-fill); } .finding.bad b { color: var(--bad); }
  .finding p { margin: 0; max-height: 6em; overflow-y: auto; } .finding summary { font-size: 13px; color: var(--dim); margin-top: 4px; }
  .calm { color: var(--dim); margin: 6px 0; } .calm::before { content: "✓"; color: var(--good); margin-right: 6px; }
  #numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin-top: 14px; }
  .number { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 8px 12px 0; overflow: hidden; }
  .number b { font-size: 22px; line-height: 1.3; font-weight: 600; display: block; font-variant-numeric: tabular-nums; }
  .number svg { width: calc(100% + 24px); height: 34px; display: block; margin: 2px -12px 0; }
  .number polyline { fill: none; stroke: var(--blue); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
  .number polygon { fill: var(--blue); opacity: .13; }
  #bar { display: flex; gap: 2px; height: 14px; border-radius: 7px; overflow: hidden; background: var(--line); } #bar i { min-width: 3px; }
  #kinds { display: flex; flex-wrap: wrap; gap: 4px 6px; margin-top: 8px; } #kinds button { border-color: transparent; background: none;
    padding: 2px 8px; text-align: left; } #kinds button:hover { background: var(--panel); } #kinds i { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 6px; }
  #kinds b { font-variant-numeric: tabular-nums; }
  #graph { display: flex; flex-wrap: wrap; gap: 26px 40px; justify-content: center; }
  .part { position: relative; } .part.ring { margin: 0 auto; } .part > svg { position: absolute; left: 0; top: 0; overflow: visible; pointer-events: none; }
  .part path { fill: none; stroke: var(--dim); stroke-width: 1.3; } .part path.red { stroke: var(--bad); stroke-width: 2.6; }
  .node { position: absolute; height: 62px; border: 1px solid var(--line); border-radius: 8px; background: var(--panel); }
  .face { list-style: none; padding: 3px 7px; height: 60px; } .node.red .face { padding: 2px 6px; } .node summary::-webkit-details-marker { display: none; }
  .node span { display: block; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; line-height: 18px; } .node .dim { font-size: 11.5px; }
  .node.many { box-shadow: 3px 3px 0 -1px var(--page), 3px 3px 0 0 var(--line), 6px 6px 0 -1px var(--page), 6px 6px 0 0 var(--line); }
  .node[open] { z-index: 2; } .node.red { border: 2px solid var(--bad); background: var(--bad-fill); } .node.red b { color: var(--bad); }
  .node em { font-style: normal; font-weight: 600; background: var(--blue); color: var(--page); border-radius: 9px; padding: 0 7px; margin-right: 2px; font-size: 12px; }
  .list { position: absolute; left: -1px; top: 66px; min-width: 100%; max-height: 260px; overflow: auto; background: var(--page); border: 1px solid var(--blue);
    border-radius: 8px; padding: 6px 10px; box-shadow: 0 6px 20px #0003; }
  #told { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .middle { position: absolute; color: var(--bad); font-size: 12px; font-weight: 600; text-align: center; line-height: 1.3; }
  #legend { display: flex; flex-wrap: wrap; gap: 4px 22px; margin-top: 18px; justify-content: center; } #legend span { display: inline-flex; align-items: center; gap: 7px; }
  #legend i { width: 22px; height: 13px; border: 1px solid var(--dim); border-radius: 4px; background: var(--panel); } #legend i.many { box-shadow: 2px 2px 0 0 var(--page), 3px 3px 0 0 var(--dim); }
  #legend i.red { border: 2px solid var(--bad); background: var(--bad-fill); } #legend svg { width: 26px; height: 9px; } #legend path:first-child { stroke: var(--dim); stroke-width: 1.3; fill: none; }
  .arrow { fill: var(--dim); } .arrow.red { fill: var(--bad); }
  #workers, #threads { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 340px), 1fr)); gap: 8px; }
  .worker { border: 1px solid var(--line); border-radius: 8px; padding: 6px 12px; display: flex; gap: 4px 12px; justify-content: space-between; align-items: baseline; }
  .worker.rests { color: var(--dim); } .worker.bad { border-color: var(--bad); background: var(--bad-fill); } #workers .worker > :last-child { flex: none; }
  #find { display: flex; flex-wrap: wrap; gap: 6px 12px; align-items: baseline; margin-bottom: 8px; } #search { flex: 0 1 340px; min-width: 0; }
  table { border-collapse: collapse; width: 100%; table-layout: fixed; } td, th { text-align: left; padding: 6px 12px 6px 0; vertical-align: top; border-bottom: 1px solid var(--line); }
  th { color: var(--dim); font-weight: 500; font-size: 12px; } th:nth-child(1) { width: 84px; } th:nth-child(2) { width: 38%; } th:nth-child(4) { width: 124px; }
  th.right, td.right { text-align: right; padding-right: 18px; } td small { display: block; }
  td:last-child, th:last-child { text-align: right; padding-right: 0; } td button { padding: 1px 8px; font-size: 12px; white-space: nowrap; }
  tr.open td { border-bottom: 0; } td.frames { text-align: left; padding: 0 0 10px; }
  pre { margin: 6px 0; padding: 8px 12px; background: var(--panel); border-radius: 6px; font: 12px/1.5 ui-monospace, monospace; overflow-x: auto; overflow-wrap: normal; scrollbar-width: thin; }
  .finding pre { background: var(--page); } .finding button { font-size: 12px; padding: 1px 8px; }
  .dot { display: inline-block; width: 8px; height: 8px; border-radius: 4px; margin-right: 7px; background: var(--dim); } .dot.running { background: var(--good); } .dot.ready { background: var(--warn); } .dot.waiting { background: var(--blue); }
  @media (max-width: 640px) {
    body { padding: 12px 14px 32px; } #numbers { grid-template-columns: 1fr 1fr; } #search { flex: 1 1 100%; }
    thead { display: none; } tbody, tr, td { display: block; } tr { position: relative; padding: 8px 0; border-bottom: 1px solid var(--line); } tr.open { border-bottom: 0; }
    td { border: 0; padding: 1px 0; } td.right { text-align: left; font-weight: 600; padding: 0; } td.right::after { content: " alike"; font-weight: 400; color: var(--dim); }
    td.right.one { display: none; } td:last-child:not(.frames) { position: absolute; right: 0; top: 8px; } td:nth-child(2) { padding-right: 90px; } }
</style>
</head>
<body>
<header>
  <svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="7" fill="#1f3a8a"/><g stroke-width="3" stroke-linecap="round" stroke="#a9c1ff"><path d="M8 26V15M13.3 26V9M24 26V12"/><path d="M18.6 26V6" stroke="#fff"/></g></svg>
  <div id="who"><h1 id="program">ulexite</h1><div id="process" class="dim">inspector</div></div>
  <nav><span id="state">asks</span><button id="pause">pause</button><a id="trace" class="button" href="trace?ms=1000">record a trace (1 s)</a>
    <span><a href="dump.txt">dump</a> &nbsp;<a href="dump.json">as JSON</a> &nbsp;<a href="metrics">metrics</a></span></nav>
</header>
<main>
<div id="told" aria-live="polite"></div>
<div id="findings"></div>
<div id="numbers"></div>
<h2>What the fibers do</h2><div id="bar"></div><div id="kinds"></div>
<h2>Who waits for whom</h2><div id="graph"></div>
<div id="legend" class="dim" hidden><span><i></i>a fiber</span><span><i class="many"></i>fibers alike; a click lists them</span>
  <span><svg viewBox="0 0 26 9"><path d="M0 4.5H20"/><path class="arrow" d="M18 1L26 4.5L18 8z"/></svg>waits for</span><span><i class="red"></i>a circle: each waits for the next</span></div>
<h2>Workers</h2><div id="workers"></div>
<h2 id="threads-head" hidden>Other threads</h2><div id="threads" hidden></div>
<h2>Fibers</h2>
<div id="find"><input id="search" type="search" aria-label="find fibers" placeholder="a name, mutex, a file, a function"><span id="shown" class="dim"></span></div>
<table><thead><tr><th class="right">fibers<th>the oldest, and where it was spawned<th>what it does<th>backtrace</thead><tbody id="groups"></tbody></table>
</main>
<svg width="0" height="0" style="position:absolute" aria-hidden="true"><marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path class="arrow" d="M0,0 L8,4 L0,8 z"/></marker>
  <marker id="red-head" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="12" markerHeight="12" markerUnits="userSpaceOnUse" orient="auto"><path class="arrow red" d="M0,0 L8,4 L0,8 z"/></marker></svg>
)html";

// The whole page.
inline std::string inspector_page() {
  std::string page(inspector_html);
  page += "<script>\n\"use strict\";\n";
  page += inspector_graph;
  page += inspector_script;
  return page += "</script>\n</body>\n</html>\n";
}

}  // namespace ulexite::detail
