// The actions of the episode as buttons, the values that searches found, and who plays.

import { COLORS, drawChart } from "/pages/charts.js";
import { button, byId, make } from "/pages/dom.js";

// `jump(ply)` looks at another state; `sit(seats)` changes who plays.
export const makeEpisode = ({ jump, sit, review, save }) => {
  let position = null, shown = "", placeOf = null;

  const list = () => {
    const key = JSON.stringify(position.words);
    if (key !== shown) {
      shown = key;
      byId("plies").replaceChildren(...position.words.map((word, i) => {
        const item = make("li");
        item.append(button(word, () => jump(i + 1)));
        return item;
      }));
    }
    [...byId("plies").children].forEach((item, i) => {
      const each = item.firstChild;
      if (i + 1 === position.ply) each.setAttribute("aria-current", "step");
      else each.removeAttribute("aria-current");
    });
    byId("ply").textContent = `ply ${position.ply} of ${position.words.length}`;
  };
  const judge = () => {
    const byPly = new Map(position.judgements.map((each) => [each.ply, each]));
    [...byId("plies").children].forEach((item, i) => {
      const each = byPly.get(i), isKnown = each !== undefined;
      item.firstChild.classList.toggle("mistake", isKnown && each.is_mistake);
      item.firstChild.textContent = position.words[i] + (isKnown && each.loss >= 0.005 ? ` \u2212${each.loss.toFixed(2)}` : "");
    });
    const mistakes = position.judgements.filter((each) => each.is_mistake);
    const last = byPly.get(position.ply - 1);
    byId("review").setAttribute("aria-pressed", String(position.reviewing));
    byId("next-mistake").disabled = !mistakes.length;
    byId("save-review").disabled = !position.judgements.length;
    byId("save-sgf").hidden = !position.isGo;
    byId("judgement").textContent = last && last.loss >= 0.005 ? `${position.words[last.ply]} lost ${last.loss.toFixed(3)}; the search prefers ${last.best}.`
      : position.judgements.length ? `${mistakes.length} mistakes in ${position.judgements.length} actions` : "";
  };
  byId("review").addEventListener("click", () => review(!position.reviewing));
  byId("next-mistake").addEventListener("click", () => {
    const mistakes = position.judgements.filter((each) => each.is_mistake);
    jump((mistakes.find((each) => each.ply + 1 > position.ply) ?? mistakes[0]).ply + 1);
  });
  byId("save-review").addEventListener("click", () => save("review"));
  byId("save-sgf").addEventListener("click", () => save("sgf"));
  const chart = () => {
    const known = position.values.map((value, ply) => [ply, value]).filter(([, value]) => value);
    byId("values").hidden = known.length < 2;
    if (known.length < 2) return;
    const series = Array.from({ length: position.players }, (_, player) => ({
      action: player, text: `player ${player}`, color: COLORS[player % COLORS.length],
      points: known.map(([ply, value]) => [ply, value[player]]),
    }));
    const xs = [0, Math.max(1, position.words.length)];
    placeOf = drawChart(byId("values-chart"), series, { xs, label: "value of the state for each player, by ply" });
  };
  byId("values-chart").addEventListener("click", (event) => {
    if (placeOf) jump(Math.min(position.words.length, Math.max(0, Math.round(placeOf(event.clientX)))));
  });
  const seats = () => {
    const place = byId("seats");
    if (place.children.length !== position.players) {
      place.replaceChildren(...position.seats.map((_, i) => {
        const label = make("label", `player ${i}`), choice = make("select");
        choice.append(new Option("person", "person"), new Option("search", "search"));
        choice.addEventListener("change", () => sit([...place.querySelectorAll("select")].map((each) => each.value)));
        label.append(choice);
        return label;
      }));
    }
    [...place.querySelectorAll("select")].forEach((choice, i) => { choice.value = position.seats[i]; });
  };
  byId("swap").addEventListener("click", () => sit([...position.seats.slice(1), position.seats[0]]));
  byId("to-start").addEventListener("click", () => jump(0));
  byId("to-back").addEventListener("click", () => jump(Math.max(0, position.ply - 1)));
  byId("to-on").addEventListener("click", () => jump(Math.min(position.words.length, position.ply + 1)));
  byId("to-end").addEventListener("click", () => jump(position.words.length));

  const show = (next) => {
    position = next;
    list();
    judge();
    chart();
    seats();
  };
  const note = (ply, value) => {
    if (position.values[ply] === undefined) return;
    position.values[ply] = value;
    chart();
  };
  return { show, note };
};
