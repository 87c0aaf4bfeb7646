"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const make = (name, text, className) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };
  const count = (number) => number.toLocaleString("en");
  const signed = (number) => (number < 0 ? "\u2212" : "+") + Math.abs(number).toFixed(3);
  const typed = (text, Type) => {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Type(bytes.buffer);
  };

  // --- selection: an action of the root, in the table, the board, the charts and the tree ---

  const rows = [...document.querySelectorAll("tr[data-action]")];
  const spots = [...document.querySelectorAll(".spot[data-action]")];
  const listeners = [];
  let selected = null;
  const select = (action, source) => {
    selected = action;
    for (const row of rows) {
      const is = Number(row.dataset.action) === action;
      row.classList.toggle("selected", is);
      row.setAttribute("aria-selected", String(is));
    }
    for (const spot of spots) spot.classList.toggle("selected", Number(spot.dataset.action) === action);
    for (const listener of listeners) listener(action, source);
  };
  const asButton = (element) => {
    const choose = () => select(Number(element.dataset.action), element);
    element.tabIndex = 0;
    element.addEventListener("click", choose);
    element.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(); }
    });
  };
  rows.forEach(asButton);
  spots.forEach(asButton);

  // --- the table, sorted by any column ---

  for (const button of document.querySelectorAll("#actions th button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const column = head.cellIndex;
      const falling = head.getAttribute("aria-sort") !== "descending";
      for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const key = (row) => Number(row.children[column].dataset.key);
      const text = (row) => row.children[column].textContent;
      const isText = rows.some((row) => row.children[column].dataset.key === undefined);
      rows.sort((a, b) => {
        const order = isText ? text(a).localeCompare(text(b), "en", { numeric: true }) : key(a) - key(b);
        return falling ? -order : order;
      });
      rows[0]?.parentNode.append(...rows);
    });
  }

  // --- charts of visits and values during the search ---

  const COLORS = ["#d97706", "#2563eb", "#16a34a", "#c026d3", "#0891b2", "#dc2626", "#84802b", "#7c3aed"];
  const svg = (name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const short = (number) => {
    const size = Math.abs(number);
    if (size >= 1e6) return +(number / 1e6).toPrecision(3) + "M";
    if (size >= 1e3) return +(number / 1e3).toPrecision(3) + "k";
    return String(+number.toPrecision(3));
  };
  const history = data.history;

  const drawChart = (place, series, isLog, floor = Infinity) => {
    const width = 360, height = 210, left = 44, right = 8, top = 8, bottom = 22;
    const xs = history.simulations;
    const scaleX = isLog ? (x) => Math.log(Math.max(1, x)) : (x) => x;
    const from = isLog ? scaleX(xs[0]) : 0;
    const across = Math.max(1e-9, scaleX(xs[xs.length - 1]) - from);
    // Values of the first simulations vary widely: on a linear axis they do not set the scale.
    const since = isLog ? 0 : 0.03 * xs[xs.length - 1];
    const all = series.flatMap((each) => each.points.filter((point) => point[0] >= since).map((point) => point[1]));
    let low = Math.min(floor, ...all), high = Math.max(...all);
    if (!all.length) { low = -1; high = 1; }
    if (!(high > low)) { low -= 1; high += 1; }
    const x = (value) => left + ((scaleX(value) - from) / across) * (width - left - right);
    const y = (value) => height - bottom - ((Math.min(Math.max(value, low), high) - low) / (high - low)) * (height - top - bottom);
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": place.dataset.label });
    for (let i = 0; i <= 4; i++) {
      const value = low + ((high - low) * i) / 4;
      root.append(svg("line", { class: "axis", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
      root.append(svg("text", { x: left - 5, y: y(value) + 4, "text-anchor": "end" }, short(value)));
    }
    for (let i = 0; i <= 3; i++) {
      const value = isLog ? Math.exp(from + (across * i) / 3) : (across * i) / 3;
      const anchor = i === 0 ? "start" : i === 3 ? "end" : "middle";
      root.append(svg("text", { x: x(value), y: height - 6, "text-anchor": anchor }, short(Math.round(value))));
    }
    for (const each of series) {
      const points = each.points.map((point) => `${x(point[0]).toFixed(1)},${y(point[1]).toFixed(1)}`);
      const line = svg("polyline", { points: points.join(" "), stroke: each.color });
      if (each.action === selected) line.classList.add("selected");
      line.append(svg("title", {}, each.text));
      root.append(line);
    }
    place.replaceChildren(root);
  };

  const startCharts = () => {
    byId("charts").hidden = false;
    const choice = byId("player");
    for (let player = 0; player < data.players; player++) choice.append(new Option(`player ${player}`, player));
    choice.value = String(Math.max(0, data.toPlay));
    byId("visits-chart").dataset.label = "visits of each action over the simulations";
    byId("value-chart").dataset.label = "value of each action over the simulations";
    const legend = byId("legend");
    const buttons = history.actions.map((action, i) => {
      const button = make("button", history.texts[i]);
      const dot = make("i");
      dot.style.background = COLORS[i % COLORS.length];
      button.type = "button";
      button.prepend(dot);
      button.addEventListener("click", () => select(action, button));
      return button;
    });
    legend.append(...buttons);
    const redraw = () => {
      const player = Number(choice.value), isLog = byId("log-axis").checked;
      const series = (values) => history.actions.map((action, i) => ({
        action, text: history.texts[i], color: COLORS[i % COLORS.length], points: values(i),
      }));
      const at = history.simulations;
      drawChart(byId("visits-chart"), series((i) => at.map((x, t) => [x, history.visits[t][i]])), isLog, 0);
      const seen = (i) => at.map((x, t) => [x, history.q[t][i][player], history.visits[t][i]]).filter((point) => point[2] > 0);
      drawChart(byId("value-chart"), series(seen), isLog);
      buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(history.actions[i] === selected)));
    };
    choice.addEventListener("change", redraw);
    byId("log-axis").addEventListener("change", redraw);
    listeners.push(redraw);
    redraw();
  };
  if (history.actions.length) startCharts();

  // --- the variation of an action, ply by ply ---

  const startLines = () => {
    const list = byId("line");
    let line = null, place = 0;
    const step = (to) => {
      if (!line || !line.words.length) return;
      place = Math.min(Math.max(0, to), line.words.length - 1);
      [...list.querySelectorAll("button")].forEach((button, i) => {
        if (i === place) button.setAttribute("aria-current", "step");
        else button.removeAttribute("aria-current");
      });
      byId("line-place").textContent = `after ${place + 1} of ${line.words.length}: ${line.words[place]}`;
      const board = line.boards[place];
      byId("line-board").textContent = board >= 0 ? data.boards[board] : "(this page does not have the state)";
    };
    listeners.push((action) => {
      line = data.lines[action];
      byId("variation").hidden = !line;
      if (!line) return;
      byId("line-note").textContent = line.note;
      list.replaceChildren(...line.words.map((word, i) => {
        const item = make("li"), button = make("button", word, i >= line.treeDepth ? "tail" : "");
        button.type = "button";
        button.addEventListener("click", () => step(i));
        item.append(button);
        return item;
      }));
      step(0);
    });
    byId("line-back").addEventListener("click", () => step(place - 1));
    byId("line-on").addEventListener("click", () => step(place + 1));
  };
  startLines();

  // --- the tree ---

  const startTree = (source) => {
    byId("tree").hidden = false;
    const size = source.size, players = data.players;
    const parent = typed(source.parent, Int32Array), action = typed(source.action, Int32Array);
    const visits = typed(source.visits, Float64Array), q = typed(source.q, Float32Array);
    const textOf = typed(source.text, Int32Array);
    const prior = source.prior && typed(source.prior, Float32Array);
    const proven = source.proven && typed(source.proven, Float32Array);
    const sameAs = source.sameAs && typed(source.sameAs, Int32Array);
    const known = new Map(source.known.map((entry) => [entry[0], entry]));
    const first = new Int32Array(size).fill(-1), children = new Int32Array(size), depth = new Int32Array(size);
    let deepest = 0;
    for (let node = 1; node < size; node++) {
      const above = parent[node];
      if (first[above] < 0) first[above] = node;
      children[above]++;
      depth[node] = depth[above] + 1;
      if (depth[node] > deepest) deepest = depth[node];
    }
    const label = (node) => node === 0 ? "root" : textOf[node] >= 0 ? data.texts[textOf[node]] : "#" + action[node];
    const pathTo = (node) => {
      const path = [];
      for (let at = node; at > 0; at = parent[at]) path.push(at);
      return path.reverse();
    };
    const mover = Math.max(0, data.toPlay);
    const isProven = (node) => Boolean(proven) && !Number.isNaN(proven[node * players]);
    const valueOf = (node) => isProven(node) ? proven[node * players + mover] : q[node * players + mover];
    let least = Infinity, most = -Infinity;
    for (let i = mover; i < q.length; i += players) { least = Math.min(least, q[i]); most = Math.max(most, q[i]); }

    // Layout: depth to the right. A node is in the row of its first child, so that the most visited
    // line is straight and rows never decrease in the order of `order`.
    const open = new Uint8Array(size);
    const order = new Int32Array(size), rowOf = new Int32Array(size), place = new Int32Array(size);
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

    const canvas = byId("canvas"), context = canvas.getContext("2d");
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
    const lastPixel = new Int32Array(deepest + 1);
    const paint = () => {
      const began = performance.now();
      isDirty = false;
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
        const jump = make("button", "shown elsewhere: go there");
        jump.type = "button";
        jump.addEventListener("click", () => go(sameAs[node]));
        panel.append(jump);
      }
      if (entry && entry[1] >= 0) panel.append(make("pre", data.boards[entry[1]], "state"));
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
      if (!quietly && line.length && action[line[0]] !== selected) select(action[line[0]], canvas);
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
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
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
      const text = byId("find").value;
      if (text !== query) { query = text; matches = search(text); turn = -1; }
      if (!matches.length) { byId("found").textContent = text.trim() ? "nothing found" : ""; return; }
      turn = (turn + 1) % matches.length;
      byId("found").textContent = `${count(turn + 1)} of ${count(matches.length)}`;
      go(matches[turn]);
    });
    byId("open-line").addEventListener("click", () => openLine());
    byId("open-all").addEventListener("click", () => openAll(1));
    byId("close-all").addEventListener("click", () => openAll(0));
    byId("zoom-in").addEventListener("click", () => zoomBy(1.5));
    byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.5));
    byId("fit").addEventListener("click", fit);

    listeners.push((chosen, source) => {
      if (source === canvas) return;
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
    resize();
    openLine(2);
  };
  if (data.tree) startTree(data.tree);
  if (data.chosen !== null) select(data.chosen, null);
  document.documentElement.dataset.ready = "yes";
})();
