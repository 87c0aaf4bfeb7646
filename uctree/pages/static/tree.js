// The tree of a search on a canvas: moved, opened and searched by mouse and keys.

import { byId, make, button } from "./dom.js";
import { count, short, signed } from "./numbers.js";
import { nodesBefore } from "./outline.js";

// `show({ outline, texts, boards, toPlay })` draws a tree, or a later one of the same root: what is
// open and selected stays so. `clear()` forgets the tree, because another root follows.
export const makeTree = (selection) => {
  const canvas = byId("canvas"), context = canvas.getContext("2d");
  let outline = null, texts = [], boards = [];
  let size = 0, players = 0, mover = 0;
  let parent, action, visits, q, prior, proven, sameAs, first, children, depth, deepest = 0, known;
  let least = Infinity, most = -Infinity; // of the values
  let open, order, rowOf, place, lastPixel;

  const label = (node) => node === 0 ? "root" : outline.textOf[node] >= 0 ? texts[outline.textOf[node]] : "#" + action[node];
  const pathTo = (node) => {
    const path = [];
    for (let at = node; at > 0; at = parent[at]) path.push(at);
    return path.reverse();
  };
  const isProven = (node) => Boolean(proven) && !Number.isNaN(proven[node * players]);
  const valueOf = (node) => isProven(node) ? proven[node * players + mover] : q[node * players + mover];

  // Layout: depth to the right. A node is in the row of its first child, so that the most visited
  // line is straight and rows never decrease in the order of `order`.
  let shown = 0, numRows = 1;
  const stack = [];
  const lay = () => {
    shown = 0;
    let row = 0;
    place.fill(-1);
    stack.length = 0;
    stack.push(0);
    while (stack.length) {
      const node = stack.pop();
      order[shown] = node;
      rowOf[shown] = row;
      place[node] = shown++;
      if (open[node] && children[node]) {
        for (let child = first[node] + children[node] - 1; child >= first[node]; child--) stack.push(child);
      } else row++;
    }
    numRows = Math.max(1, row);
  };

  const view = { x: -12, y: -12, zoom: 1 };
  let width = 0, height = 0, current = 0, isDirty = false, colors = {};
  const rowHeight = () => 24 * view.zoom;
  const hasLabels = () => rowHeight() >= 11;
  const colWidth = () => hasLabels() ? Math.max(96, 168 * Math.min(1.5, view.zoom)) : Math.max(9, 110 * Math.sqrt(view.zoom), Math.min(96, (width - 24) / (deepest + 1)));
  const readColors = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["ink", "quiet", "line", "accent", "soft", "good", "bad", "even"]) colors[name] = style.getPropertyValue("--" + name).trim();
  };
  const mark = () => { if (!isDirty) { isDirty = true; requestAnimationFrame(paint); } };
  // The first place in `order` whose row is at least `row`.
  const seek = (row) => {
    let low = 0, high = shown;
    while (low < high) { const middle = (low + high) >> 1; if (rowOf[middle] < row) low = middle + 1; else high = middle; }
    return low;
  };
  const clamp = () => {
    if (!outline) return;
    const maxY = Math.max(-12, numRows * rowHeight() - height + 12), maxX = Math.max(-12, (deepest + 1) * colWidth() - width + 12);
    view.y = Math.min(Math.max(view.y, -12), maxY);
    view.x = Math.min(Math.max(view.x, -12), maxX);
  };
  const shade = (node) => {
    const value = valueOf(node), middle = (least + most) / 2, half = (most - least) / 2 || 1;
    const t = (value - middle) / half;
    return t > 0.15 ? colors.good : t < -0.15 ? colors.bad : colors.even;
  };
  const stem = (node) => {
    const last = place[first[node] + children[node] - 1];
    const from = Math.max(-2, (rowOf[place[node]] + 0.5) * rowHeight() - view.y);
    const to = Math.min(height + 2, (rowOf[last] + 0.5) * rowHeight() - view.y);
    if (to - from >= 1) {
      const x = (depth[node] + 1) * colWidth() - view.x - 10;
      context.fillRect(x, from, 1, to - from);
    }
  };
  const paint = () => {
    const began = performance.now();
    isDirty = false;
    if (!outline) { context.clearRect(0, 0, canvas.width, canvas.height); return; }
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const high = rowHeight(), wide = colWidth(), texts = hasLabels();
    const begin = seek(Math.floor(view.y / high)), end = seek(Math.ceil((view.y + height) / high) + 1);
    context.fillStyle = colors.line;
    if (begin < shown) for (let at = parent[order[begin]]; at >= 0; at = parent[at]) stem(at);
    for (let k = begin; k < end; k++) if (open[order[k]] && children[order[k]]) stem(order[k]);
    lastPixel.fill(-9);
    const fontSize = Math.min(13, Math.max(9, high * 0.55));
    context.textBaseline = "middle";
    let painted = 0;
    for (let k = begin; k < end; k++) {
      const node = order[k], deep = depth[node];
      const x = deep * wide - view.x;
      if (x > width || x + wide < 0) continue;
      const top = rowOf[k] * high - view.y, pixel = Math.round(top);
      if (!texts && lastPixel[deep] === pixel && node !== current) continue;
      lastPixel[deep] = pixel;
      painted++;
      const middle = top + high / 2;
      if (node > 0) { context.fillStyle = colors.line; context.fillRect(x - 10, middle, 10, 1); }
      if (open[node] && children[node]) { context.fillStyle = colors.line; context.fillRect(x + wide - 18, middle, 9, 1); }
      if (node === current) { context.fillStyle = colors.soft; context.fillRect(x, top + 1, wide - 18, Math.max(2, high - 2)); }
      context.fillStyle = shade(node);
      if (!texts) { context.fillRect(x, top, Math.max(3, wide - 18), Math.max(1, high - 1)); continue; }
      const radius = Math.min(high * 0.36, 2.5 + 6 * Math.sqrt(visits[node] / Math.max(1, visits[0])));
      context.beginPath();
      context.arc(x + 9, middle, radius, 0, 7);
      context.fill();
      if (children[node] && !open[node]) { context.fillRect(x + wide - 16, middle - 3, 1.5, 6); context.fillRect(x + wide - 18, middle - 0.75, 5.5, 1.5); }
      context.save();
      context.beginPath();
      context.rect(x + 18, top, wide - 38, high);
      context.clip();
      context.fillStyle = colors.ink;
      context.font = `600 ${fontSize}px system-ui, sans-serif`;
      const word = label(node).slice(0, 40);
      context.fillText(word, x + 20, middle);
      const after = x + 26 + context.measureText(word).width;
      context.fillStyle = colors.quiet;
      context.font = `${fontSize * 0.9}px system-ui, sans-serif`;
      const sign = isProven(node) ? "= " : "";
      context.fillText(`${short(visits[node])}  ${sign}${signed(valueOf(node))}`, after, middle);
      context.restore();
    }
    canvas.dataset.painted = painted;
    canvas.dataset.shown = shown;
    canvas.dataset.paintMs = (performance.now() - began).toFixed(2);
  };

  const describe = (node) => {
    const path = pathTo(node).map(label), panel = byId("node");
    const table = make("table"), body = make("tbody");
    const add = (name, value) => {
      const row = make("tr"), head = make("th", name);
      head.scope = "row";
      row.append(head, make("td", value));
      body.append(row);
    };
    add("visits", count(visits[node]));
    if (node > 0) add("share of parent's visits", ((100 * visits[node]) / Math.max(1, visits[parent[node]])).toFixed(1) + " %");
    for (let player = 0; player < players; player++) add(`value, player ${player}`, signed(q[node * players + player]));
    if (prior && !Number.isNaN(prior[node])) add("prior", prior[node].toFixed(3));
    if (isProven(node)) {
      add("proven", [...proven.slice(node * players, (node + 1) * players)].map(signed).join(" "));
    }
    add("depth", String(depth[node]));
    add("actions below with visits", count(children[node]));
    const entry = known.get(node);
    if (entry) add("to move", entry[2]);
    table.append(body);
    panel.replaceChildren(make("h3", path.length ? path.join(" > ") : "root"), table);
    if (sameAs && sameAs[node] >= 0) {
      panel.append(button("shown elsewhere: go there", () => go(sameAs[node])));
    }
    if (entry && entry[1] >= 0) {
      const state = make("pre", boards[entry[1]], "state");
      state.tabIndex = 0; // it can be wider than the panel
      panel.append(state);
    }
    canvas.dataset.selected = path.join(" > ");
    canvas.setAttribute("aria-label", `search tree, at ${path.join(" > ") || "root"}, ${count(visits[node])} visits`);
  };
  const reveal = (node) => {
    const high = rowHeight(), wide = colWidth();
    const top = rowOf[place[node]] * high, left = depth[node] * wide;
    if (top < view.y || top + high > view.y + height) view.y = top - height / 2;
    if (left < view.x || left + wide > view.x + width) view.x = left - width / 2;
    clamp();
  };
  const openTo = (node) => { for (let at = parent[node]; at >= 0; at = parent[at]) open[at] = 1; };
  const go = (node, quietly) => {
    current = node;
    if (place[node] < 0) { openTo(node); lay(); }
    reveal(node);
    describe(node);
    mark();
    const line = pathTo(node);
    if (!quietly && line.length && action[line[0]] !== selection.action) selection.select(action[line[0]], canvas);
  };
  const toggle = (node, to = !open[node]) => {
    if (!children[node]) return;
    open[node] = to ? 1 : 0;
    lay();
    if (place[current] < 0) go(node);
    clamp();
    mark();
  };
  const zoomBy = (factor, x = width / 2, y = height / 2) => {
    const row = (view.y + y) / rowHeight(), col = (view.x + x) / colWidth();
    const smallest = Math.min(1, Math.max(0.0002, (height - 24) / (24 * numRows)));
    view.zoom = Math.min(3, Math.max(smallest, view.zoom * factor));
    view.y = row * rowHeight() - y;
    view.x = col * colWidth() - x;
    clamp();
    mark();
  };
  const fit = () => { view.x = view.y = -12; view.zoom = Math.min(1, (height - 24) / (24 * numRows)); clamp(); mark(); };
  const openLine = (most = Infinity) => {
    open.fill(0);
    for (let node = 0; children[node] && depth[node] < most; node = first[node]) open[node] = 1;
    lay();
    view.x = view.y = -12;
    view.zoom = 1;
    go(0, true);
  };
  const openAll = (to) => { open.fill(to); if (!to) open[0] = 1; lay(); if (place[current] < 0) go(0); clamp(); mark(); };

  const hit = (event) => {
    if (!outline) return null;
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left + view.x, y = event.clientY - box.top + view.y;
    const row = Math.floor(y / rowHeight()), deep = Math.floor((x + 10) / colWidth());
    for (let k = seek(row); k < shown && rowOf[k] === row; k++) if (depth[order[k]] === deep) {
      return { node: order[k], isMarker: x - deep * colWidth() > colWidth() - 24 || x - deep * colWidth() < 18 };
    }
    return null;
  };
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, y: event.clientY, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) {
      const at = hit(event);
      canvas.title = at ? `${label(at.node)}: ${count(visits[at.node])} visits, ${signed(valueOf(at.node))} for player ${mover}` : "";
      canvas.style.cursor = at ? "pointer" : "grab";
      return;
    }
    if (Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) > 3) drag.moved = true;
    if (!drag.moved) return;
    view.x -= event.clientX - drag.x;
    view.y -= event.clientY - drag.y;
    drag.x = event.clientX;
    drag.y = event.clientY;
    clamp();
    mark();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) {
      const at = hit(event);
      if (at) { const again = at.node === current; go(at.node); if (again || at.isMarker) toggle(at.node); }
    }
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("wheel", (event) => {
    if (!outline) return;
    const box = canvas.getBoundingClientRect(), before = [view.x, view.y, view.zoom];
    if (event.ctrlKey || event.metaKey) zoomBy(Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
    else { view.x += event.deltaX; view.y += event.deltaY; clamp(); mark(); }
    // At the end of the tree the page itself scrolls.
    if (before[0] !== view.x || before[1] !== view.y || before[2] !== view.zoom || event.ctrlKey) event.preventDefault();
  }, { passive: false });

  const neighbour = (by) => {
    // The nearest node of the same depth; the current one if there is none.
    for (let k = place[current] + by; k >= 0 && k < shown; k += by) if (depth[order[k]] === depth[current]) return order[k];
    return current;
  };
  const keys = {
    ArrowRight: () => { if (!children[current]) return; if (!open[current]) toggle(current, true); else go(first[current]); },
    ArrowLeft: () => { if (open[current] && children[current]) toggle(current, false); else if (current) go(parent[current]); },
    ArrowDown: () => go(neighbour(1)),
    ArrowUp: () => go(neighbour(-1)),
    Enter: () => toggle(current),
    " ": () => toggle(current),
    Home: () => go(0),
    "+": () => zoomBy(1.25),
    "=": () => zoomBy(1.25),
    "-": () => zoomBy(0.8),
    0: fit,
    "/": () => byId("find").focus(),
    PageDown: () => { view.y += height * 0.9; clamp(); mark(); },
    PageUp: () => { view.y -= height * 0.9; clamp(); mark(); },
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key] || !outline) return;
    event.preventDefault();
    keys[event.key]();
  });

  // Find: the action texts of a path from the root, or one action anywhere, most visited first.
  let query = "", matches = [], turn = -1;
  const child = (node, word) => {
    for (let at = first[node]; at >= 0 && at < first[node] + children[node]; at++) if (label(at).toLowerCase() === word) return at;
    return -1;
  };
  const follow = (words) => {
    let node = 0;
    for (const word of words) { node = child(node, word); if (node < 0) return []; }
    return words.length ? [node] : [];
  };
  const search = (text) => {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    if (wanted.includes(">")) return follow(wanted.split(">").map((word) => word.trim()).filter(Boolean));
    const exact = [], partial = [];
    for (let node = 1; node < size; node++) {
      const word = label(node).toLowerCase();
      if (word === wanted) exact.push(node);
      else if (word.includes(wanted)) partial.push(node);
    }
    for (const found of [exact, partial]) found.sort((a, b) => visits[b] - visits[a] || a - b);
    const all = exact.length ? exact : partial;
    return all.length ? all : follow(wanted.split(/[\s,]+/));
  };
  byId("find-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!outline) return;
    const text = byId("find").value;
    if (text !== query) { query = text; matches = search(text); turn = -1; }
    if (!matches.length) { byId("found").textContent = text.trim() ? "nothing found" : ""; return; }
    turn = (turn + 1) % matches.length;
    byId("found").textContent = `${count(turn + 1)} of ${count(matches.length)}`;
    go(matches[turn]);
  });
  byId("open-line").addEventListener("click", () => outline && openLine());
  byId("open-all").addEventListener("click", () => outline && openAll(1));
  byId("close-all").addEventListener("click", () => outline && openAll(0));
  byId("zoom-in").addEventListener("click", () => outline && zoomBy(1.5));
  byId("zoom-out").addEventListener("click", () => outline && zoomBy(1 / 1.5));
  byId("fit").addEventListener("click", () => outline && fit());

  selection.listen((chosen, source) => {
    if (source === canvas || !outline) return;
    for (let at = first[0]; at >= 0 && at < first[0] + children[0]; at++) if (action[at] === chosen) { open[0] = 1; lay(); go(at, true); return; }
  });
  const resize = () => {
    const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    width = box.width;
    height = box.height;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    clamp();
    mark();
  };
  new ResizeObserver(resize).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColors(); mark(); });
  readColors();

  const show = (next) => {
    const earlier = outline, wasOpen = open, wasCurrent = current;
    outline = next.outline;
    ({ texts, boards } = next);
    ({ size, players, parent, action, visits, q, prior, proven, sameAs, first, children, depth, deepest, known } = outline);
    mover = Math.max(0, next.toPlay);
    least = Infinity;
    most = -Infinity;
    for (let i = mover; i < q.length; i += players) { least = Math.min(least, q[i]); most = Math.max(most, q[i]); }
    open = new Uint8Array(size);
    order = new Int32Array(size);
    rowOf = new Int32Array(size);
    place = new Int32Array(size);
    lastPixel = new Int32Array(deepest + 1);
    current = 0;
    if (query) matches = search(query);
    if (!earlier) {
      resize();
      openLine(2);
      return;
    }
    const before = nodesBefore(outline, earlier);
    for (let node = 0; node < size; node++) {
      if (before[node] < 0) continue;
      open[node] = wasOpen[before[node]];
      if (before[node] === wasCurrent) current = node;
    }
    openTo(current);
    lay();
    clamp();
    describe(current);
    mark();
  };
  const clear = () => {
    outline = null;
    shown = 0;
    byId("node").replaceChildren();
    mark();
  };
  return { show, clear };
};
