// Why the rule takes an action at a node: the terms of the scores, as the kernel computes them.

import { button, byId, make } from "/pages/dom.js";
import { count, signed } from "/pages/numbers.js";

const COLUMNS = [
  ["action", "click to go to the node behind it"],
  ["visits", "N(s,a), those in flight included"],
  ["value", "mean of the returns for the player to move"],
  ["prior", "P(s,a)"],
  ["scaled value", "the value as the rule takes it: scaled, mixed with all-moves-as-first, or assumed for an action without visits"],
  ["by all moves", "how much all-moves-as-first changed the value"],
  ["bonus", "score minus scaled value: exploration"],
  ["score", "the largest one is taken"],
  ["value needed", "to be taken now"],
  ["or simulations", "that pass it by until it is taken, if no value changes"],
];

// `ask(content)` asks the server; without actions it stops explaining.
export const makeWhy = (ask) => {
  const table = byId("why-table"), slider = byId("why-moment");
  let isOpen = false, actions = [], moment = null, moments = [], rows = [], selected = null;

  const head = make("tr");
  head.append(...COLUMNS.map(([name, title]) => {
    const each = make("th", name);
    each.scope = "col";
    each.title = title;
    return each;
  }));
  table.tHead.append(head);

  const request = () => ask(isOpen ? { actions, ...(moment === null ? {} : { simulations: moment }) } : {});
  const goTo = (next) => {
    actions = next;
    moment = null;
    selected = null;
    request();
  };
  const number = (value, text = signed) => (value === null || value === undefined ? "" : text(value));

  const explain = () => {
    const taken = rows.find((row) => row.taken), row = rows.find((each) => each.action === selected) ?? taken;
    let text = "";
    if (row && row.score !== null) {
      const terms = `value ${signed(row.q)} + bonus ${signed(row.bonus)} = ${signed(row.score)}`;
      if (row === taken) text = `${row.text} is taken next: ${terms}, the largest score.`;
      else if (taken && taken.score !== null) {
        text = `${row.text} is not taken now: ${terms}, and ${taken.text} has ${signed(taken.score)}.`;
        if (row.neededValue !== null) text += ` It would be, with a value of ${signed(row.neededValue)} (now ${number(row.value) || "none"})`;
        if (row.neededSimulations !== null) text += `${row.neededValue !== null ? ", or" : " It will be"} after ${count(row.neededSimulations)} simulations that pass it by`;
        if (row.neededValue !== null || row.neededSimulations !== null) text += ".";
      }
    }
    byId("why-text").textContent = text;
    [...table.tBodies[0].rows].forEach((each) => each.classList.toggle("selected", each.dataset.action === String(row?.action)));
  };
  const show = ({ why, moments: known, moment: shown }) => {
    if (!isOpen) return;
    const root = button("root", () => goTo([]));
    const path = why.path.map(([, word], i) => button(word, () => goTo(why.path.slice(0, i + 1).map(([action]) => action))));
    byId("why-path").replaceChildren(...[root, ...path].map((each, i) => {
      const item = make("li");
      if (i === path.length) each.setAttribute("aria-current", "step");
      item.append(each);
      return item;
    }));
    actions = why.path.map(([action]) => action);
    rows = [...why.edges].sort((a, b) => (b.score ?? (b.taken ? Infinity : -Infinity)) - (a.score ?? (a.taken ? Infinity : -Infinity)) || b.visits - a.visits);
    byId("why-note").textContent = why.who === undefined ? why.note
      : `${why.who} to move, ${count(why.visits)} visits, rule ${why.rule}${why.untried ? `, ${count(why.untried)} actions without an edge` : ""}${why.note ? `: ${why.note}` : ""}.`;
    table.tBodies[0].replaceChildren(...rows.map((row) => {
      const each = make("tr"), name = make("th", row.text);
      name.scope = "row";
      if (row.action !== null) each.dataset.action = row.action;
      each.classList.toggle("chosen", row.taken);
      each.append(name, ...[
        count(row.visits), number(row.value), number(row.prior, (p) => p.toFixed(3)), number(row.q),
        row.mixed ? number(row.mixed) : "", number(row.bonus), number(row.score), row.taken ? "" : number(row.neededValue),
        row.taken ? "next" : number(row.neededSimulations, count),
      ].map((text) => make("td", text)));
      if (row.action !== null && row.visits > 0) {
        name.replaceChildren(button(row.text, () => goTo([...actions, row.action])));
        each.addEventListener("click", (event) => {
          if (event.target.tagName === "BUTTON") return;
          selected = row.action;
          explain();
        });
      }
      return each;
    }));
    moments = known;
    byId("why-time").hidden = actions.length > 0 || moments.length < 2;
    slider.max = moments.length;
    if (shown === null) slider.value = moments.length;
    byId("why-when").textContent = shown === null ? "now" : `${count(shown)} simulations`;
    explain();
  };
  slider.addEventListener("input", () => {
    moment = Number(slider.value) < moments.length ? moments[Number(slider.value)] : null;
    request();
  });
  byId("why-open").addEventListener("click", () => {
    isOpen = !isOpen;
    byId("why-open").setAttribute("aria-pressed", String(isOpen));
    byId("why-parts").hidden = !isOpen;
    byId("why-time").hidden = true;
    request();
  });
  const clear = () => {
    actions = [];
    moment = null;
    selected = null;
    rows = [];
    table.tBodies[0].replaceChildren();
    for (const id of ["why-note", "why-text"]) byId(id).textContent = "";
    byId("why-path").replaceChildren();
    byId("why-time").hidden = true;
  };
  // After the connection was lost.
  const again = () => { if (isOpen) request(); };
  return { show, clear, again };
};
