// A variation, ply by ply: buttons for its plies, and the board after the one that is chosen.

import { byId, button, make } from "./dom.js";

// `showBoard(index)` shows one of the boards of the line; -1 is a state that the page does not have.
export const makeLine = (showBoard) => {
  const list = byId("line");
  let line = null, place = 0;
  const step = (to) => {
    if (!line || !line.words.length) return;
    place = Math.min(Math.max(0, to), line.words.length - 1);
    [...list.querySelectorAll("button")].forEach((each, i) => {
      if (i === place) each.setAttribute("aria-current", "step");
      else each.removeAttribute("aria-current");
    });
    byId("line-place").textContent = `after ${place + 1} of ${line.words.length}: ${line.words[place]}`;
    showBoard(line.boards[place]);
  };
  // `isSame`: the line belongs to the same action as before, and the place in it stays.
  const show = (next, isSame = false) => {
    line = next;
    byId("variation").hidden = !line;
    if (!line) return;
    byId("line-note").textContent = line.note;
    list.replaceChildren(...line.words.map((word, i) => {
      const item = make("li"), each = button(word, () => step(i));
      if (i >= line.treeDepth) each.className = "tail";
      item.append(each);
      return item;
    }));
    step(isSame ? place : 0);
  };
  byId("line-back").addEventListener("click", () => step(place - 1));
  byId("line-on").addEventListener("click", () => step(place + 1));
  return { show };
};
