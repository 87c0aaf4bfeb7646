// Two searches of a state side by side.

import { byId, make } from "/pages/dom.js";
import { count, signed } from "/pages/numbers.js";

export const showComparison = ({ names, simulations, chosen, totalVariation, valueDifference, rows }) => {
  byId("comparison").hidden = false;
  byId("comparison-text").textContent =
    `a: ${chosen[0]} (${names[0]}; ${count(simulations[0])} simulations), b: ${chosen[1]} (${names[1]}; ${count(simulations[1])}). `
    + `Visits differ by ${(100 * totalVariation).toFixed(1)} %, the value by ${signed(valueDifference)}.`;
  const table = byId("comparison-table"), head = make("tr");
  head.append(...["action", "visits a", "visits b", "share a", "share b", "value a", "value b"].map((name) => {
    const each = make("th", name);
    each.scope = "col";
    return each;
  }));
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...rows.map((row) => {
    const each = make("tr"), name = make("th", row.text);
    name.scope = "row";
    const texts = [...row.visits.map(count), ...row.share.map((share) => `${(100 * share).toFixed(1)}%`), ...row.q.map((q) => (q === null ? "" : signed(q)))];
    each.append(name, ...texts.map((text) => make("td", text)));
    return each;
  }));
};
