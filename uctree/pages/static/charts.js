// Charts of lines: visits and values during a search, and values over an episode.

import { byId, button, make, svg } from "./dom.js";
import { short } from "./numbers.js";

export const COLORS = ["#d97706", "#2563eb", "#16a34a", "#c026d3", "#0891b2", "#dc2626", "#84802b", "#7c3aed"];

const WIDTH = 360, HEIGHT = 210, LEFT = 44, RIGHT = 8, TOP = 8, BOTTOM = 22;

// Draws `series`, each with points [x, y], into `place`. `xs` are all x; `floor` is the highest y at
// which the axis may begin; `selected` is the action of the thick line. Returns x of a place on the
// screen as a number.
export const drawChart = (place, series, { xs, isLog = false, floor = Infinity, selected = null, label = "" }) => {
  const scaleX = isLog ? (x) => Math.log(Math.max(1, x)) : (x) => x;
  const from = isLog ? scaleX(xs[0]) : 0;
  const across = Math.max(1e-9, scaleX(xs[xs.length - 1]) - from);
  // Values of the first simulations vary widely: on a linear axis they do not set the scale.
  const since = isLog ? 0 : 0.03 * xs[xs.length - 1];
  const all = series.flatMap((each) => each.points.filter((point) => point[0] >= since).map((point) => point[1]));
  let low = Math.min(floor, ...all), high = Math.max(...all);
  if (!all.length) { low = -1; high = 1; }
  if (!(high > low)) { low -= 1; high += 1; }
  const x = (value) => LEFT + ((scaleX(value) - from) / across) * (WIDTH - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - ((Math.min(Math.max(value, low), high) - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
  for (let i = 0; i <= 4; i++) {
    const value = low + ((high - low) * i) / 4;
    root.append(svg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }));
    root.append(svg("text", { x: LEFT - 5, y: y(value) + 4, "text-anchor": "end" }, short(value)));
  }
  for (let i = 0; i <= 3; i++) {
    const value = isLog ? Math.exp(from + (across * i) / 3) : (across * i) / 3;
    const anchor = i === 0 ? "start" : i === 3 ? "end" : "middle";
    root.append(svg("text", { x: x(value), y: HEIGHT - 6, "text-anchor": anchor }, short(Math.round(value))));
  }
  for (const each of series) {
    const points = each.points.map((point) => `${x(point[0]).toFixed(1)},${y(point[1]).toFixed(1)}`);
    const line = svg("polyline", { points: points.join(" "), stroke: each.color });
    if (selected !== null && each.action === selected) line.classList.add("selected");
    line.append(svg("title", {}, each.text));
    root.append(line);
  }
  place.replaceChildren(root);
  return (clientX) => {
    const box = root.getBoundingClientRect();
    const share = (((clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT);
    return isLog ? Math.exp(from + across * share) : across * share;
  };
};

// The charts of the most visited actions. `begin` is called for every root, `show` draws the history
// of its search.
export const makeCharts = (selection) => {
  const choice = byId("player");
  let history = null, buttons = [];
  const redraw = () => {
    if (!history) return;
    const player = Number(choice.value), xs = history.simulations;
    const given = { xs, isLog: byId("log-axis").checked, selected: selection.action };
    const series = (values) => history.actions.map((action, i) => ({
      action, text: history.texts[i], color: COLORS[i % COLORS.length], points: values(i),
    }));
    const seen = (i) => xs.map((x, t) => [x, history.q[t][i][player], history.visits[t][i]]).filter((point) => point[2] > 0);
    drawChart(byId("visits-chart"), series((i) => xs.map((x, t) => [x, history.visits[t][i]])),
      { ...given, floor: 0, label: "visits of each action over the simulations" });
    drawChart(byId("value-chart"), series(seen), { ...given, label: "value of each action over the simulations" });
    buttons.forEach((each, i) => each.setAttribute("aria-pressed", String(history.actions[i] === selection.action)));
  };
  const show = (next) => {
    const isSame = history && history.actions.join() === next.actions.join();
    history = next;
    if (!isSame) {
      buttons = history.actions.map((action, i) => {
        const dot = make("i");
        dot.style.background = COLORS[i % COLORS.length];
        const each = button(history.texts[i], (source) => selection.select(action, source));
        each.prepend(dot);
        return each;
      });
      byId("legend").replaceChildren(...buttons);
    }
    redraw();
  };
  const begin = (players, toPlay) => {
    choice.replaceChildren(...Array.from({ length: players }, (_, player) => new Option(`player ${player}`, player)));
    choice.value = String(Math.max(0, toPlay));
    history = null;
  };
  choice.addEventListener("change", redraw);
  byId("log-axis").addEventListener("change", redraw);
  selection.listen(redraw);
  return { begin, show };
};
