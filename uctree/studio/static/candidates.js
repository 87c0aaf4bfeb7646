// The candidates of a search as a table that changes while it runs.

import { byId, make } from "/pages/dom.js";
import { count, short, signed } from "/pages/numbers.js";

const WORDS = {
  running: "searching", studio: "stopped", simulations: "done", seconds: "time is up", solved: "solved",
  full: "the tree is full", interrupted: "interrupted", terminal: "the episode is over",
};

// `follow(action)` is called for the candidate that the pointer or the focus rests on, null for none.
export const makeCandidates = (selection, follow) => {
  const table = byId("candidates"), body = table.tBodies[0];
  let rows = new Map(), players = 0;

  const head = () => {
    const names = ["action", "visits", "share", ...Array.from({ length: players }, (_, i) => `value ${i}`), "bound", "prior"];
    const row = make("tr");
    row.append(...names.map((name) => {
      const each = make("th", name);
      each.scope = "col";
      return each;
    }));
    table.tHead.replaceChildren(row);
  };
  const rowOf = (action) => {
    if (rows.has(action)) return rows.get(action);
    const row = make("tr"), name = make("th");
    name.scope = "row";
    row.dataset.action = action;
    row.tabIndex = 0;
    row.append(name, ...Array.from({ length: 4 + players }, () => make("td")));
    const bar = make("span", "", "bar");
    row.children[2].append(bar, document.createTextNode(""));
    row.addEventListener("pointerenter", () => follow(action));
    row.addEventListener("pointerleave", () => follow(null));
    row.addEventListener("focus", () => follow(action));
    row.addEventListener("blur", () => follow(null));
    row.addEventListener("click", () => selection.select(action, row));
    row.addEventListener("keydown", (event) => { if (event.key === "Enter") selection.select(action, row); });
    rows.set(action, row);
    return row;
  };
  const write = (cell, text) => { if (cell.textContent !== text) cell.textContent = text; };

  const clear = (next) => {
    if (players !== next.players) { players = next.players; head(); }
    rows = new Map();
    body.replaceChildren();
    for (const id of ["search-status", "verdict", "more"]) byId(id).textContent = "";
  };
  const show = (frame, position) => {
    const order = frame.rows.map((candidate) => {
      const row = rowOf(candidate.action), cells = row.children;
      write(cells[0], candidate.text);
      write(cells[1], count(candidate.visits));
      cells[2].firstChild.style.width = `${(4 * candidate.share).toFixed(2)}rem`;
      cells[2].lastChild.data = `${(100 * candidate.share).toFixed(1)}%`;
      candidate.q.forEach((value, player) => write(cells[3 + player], candidate.proven ? `= ${signed(candidate.proven[player])}` : signed(value)));
      write(cells[3 + players], candidate.low === null ? "" : `${signed(candidate.low)} to ${signed(candidate.high)}`);
      write(cells[4 + players], candidate.prior === null ? "" : candidate.prior.toFixed(3));
      row.classList.toggle("chosen", candidate.action === frame.chosen);
      row.classList.toggle("selected", candidate.action === selection.action);
      return row;
    });
    // Rows move only if the order has changed, so that the focus stays where it is.
    order.forEach((row, i) => { if (body.children[i] !== row) body.insertBefore(row, body.children[i] ?? null); });
    while (body.children.length > order.length) body.lastChild.remove();
    byId("more").textContent = frame.more ? `\u2026 and ${count(frame.more)} less visited ones` : "";
    const best = frame.rows.find((candidate) => candidate.action === frame.chosen);
    const values = frame.value.map((value, player) => `${signed(value)} for player ${player}`).join(", ");
    byId("verdict").textContent = `${position.who} to move${best ? `: ${best.text}` : ""}; value ${values}${frame.solved ? ", proven" : ""}`;
    byId("search-status").textContent = `${WORDS[frame.status] ?? frame.status}: ${count(frame.simulations)} simulations, `
      + `${short(Math.round(frame.rate))}/s, depth ${frame.depth.toFixed(1)}, ${(frame.bytes / 1e6).toFixed(1)} MB`;
  };
  selection.listen((action) => {
    for (const [each, row] of rows) row.classList.toggle("selected", each === action);
  });
  return { show, clear };
};
