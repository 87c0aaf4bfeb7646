// The board of the state that is looked at, and everything that takes an action there.

import { asButton, button, byId, make } from "/pages/dom.js";

// Puts a drawing of the server into a place; nothing but the SVG in it.
export const showDrawing = (place, text) => {
  const drawing = new DOMParser().parseFromString(text, "text/html").querySelector("svg");
  place.replaceChildren(...(drawing ? [document.importNode(drawing, true)] : []));
};

// `act(action)` takes a number or a vector, `say(text)` what a person typed.
export const makeBoard = ({ act, say }) => {
  const place = byId("board"), text = byId("board-text"), choice = byId("choice"), vector = byId("vector");
  let position = null, drawn = null, spots = new Map(), texts = new Map();

  const offer = (actions) => {
    choice.replaceChildren(...actions.map((action) => {
      const chance = (position.chances ?? []).find(([outcome]) => outcome === action);
      const word = chance ? `${texts.get(action)} (${(100 * chance[1]).toFixed(1)} %)` : texts.get(action);
      const each = button(word, () => act(action));
      each.dataset.action = action;
      return each;
    }));
    if (position.more) choice.append(make("span", `and ${position.more} more: type one of them`, "quiet"));
  };
  const choose = (spot) => {
    const actions = spots.get(Number(spot.dataset.action)) ?? [];
    if (actions.length === 1) act(actions[0]);
    else {
      offer(actions);
      choice.querySelector("button")?.focus();
    }
  };
  const draw = () => {
    if (position.board === drawn) return;
    drawn = position.board;
    const focused = place.contains(document.activeElement) ? document.activeElement.dataset.action : null;
    showDrawing(place, drawn ?? "");
    for (const spot of place.querySelectorAll(".spot[data-action]")) asButton(spot, choose);
    if (focused) (place.querySelector(`.spot[data-action="${focused}"]`) ?? byId("state")).focus();
  };
  const offerVector = () => {
    const [low, high] = position.box;
    const inputs = low.map((least, i) => {
      const label = make("label", `${i + 1}`), slider = make("input"), number = make("input");
      slider.type = "range";
      number.type = "number";
      for (const input of [slider, number]) {
        input.min = least;
        input.max = high[i];
        input.step = input === slider ? (high[i] - least) / 200 || 1 : "any";
        input.value = (least + high[i]) / 2;
        input.setAttribute("aria-label", `coordinate ${i + 1}${input === slider ? ", slider" : ""}`);
      }
      slider.addEventListener("input", () => { number.value = slider.value; });
      number.addEventListener("input", () => { slider.value = number.value; });
      label.append(slider, number);
      return [label, number];
    });
    const play = make("button", "play");
    play.type = "submit";
    vector.replaceChildren(...inputs.map(([label]) => label), play);
    vector.onsubmit = (event) => {
      event.preventDefault();
      act(inputs.map(([, number]) => Number(number.value)));
    };
  };

  byId("say-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (byId("say").value.trim()) say(byId("say").value.trim());
    byId("say").value = "";
  });

  const show = (next) => {
    const isNew = !position || next.serial !== position.serial;
    position = next;
    spots = new Map(position.cells);
    texts = new Map(position.actions);
    draw();
    text.hidden = drawn !== null;
    text.textContent = position.text;
    const onBoard = new Set(position.cells.flatMap(([, actions]) => actions));
    offer(position.over ? [] : position.actions.map(([action]) => action).filter((action) => !onBoard.has(action)));
    vector.hidden = !position.box || position.over;
    if (position.box && isNew) offerVector();
  };
  // Shades of a search: [action of the cell, opacity, share as text].
  const shade = (shades, chosen) => {
    const byAction = new Map(shades.map((each) => [each[0], each]));
    for (const spot of place.querySelectorAll(".spot[data-action]")) {
      const [action, opacity, percent] = byAction.get(Number(spot.dataset.action)) ?? [null, 0.08, ""];
      spot.querySelector(".shade").setAttribute("fill-opacity", opacity);
      spot.querySelector(".percent").textContent = percent;
      spot.dataset.word ??= spot.getAttribute("aria-label");
      spot.setAttribute("aria-label", percent ? `${spot.dataset.word}: ${percent} of the visits` : spot.dataset.word);
      spot.classList.toggle("chosen", (spots.get(action) ?? []).includes(chosen));
    }
  };
  // Another drawing for as long as the pointer rests on a candidate; null shows the state again.
  const preview = (drawing) => {
    if (drawing === null && !place.classList.contains("preview")) return;
    place.classList.toggle("preview", drawing !== null);
    if (drawing !== null) showDrawing(place, drawing);
    else { drawn = undefined; draw(); }
  };
  return { show, shade, preview };
};
