// The action of the root that is selected: in the table, the board, the charts and the tree.

import { asButton } from "./dom.js";

export const makeSelection = () => {
  const listeners = [];
  const selection = {
    action: null,
    // `listener(action, source)`; `source` is what the selection was made with, null for the page.
    listen: (listener) => listeners.push(listener),
    select: (action, source) => {
      selection.action = action;
      for (const listener of listeners) listener(action, source);
    },
  };
  return selection;
};

// Rows of a table and cells of a board, which have `data-action`, show the selection and change it.
export const join = (selection, rows, spots) => {
  selection.listen((action) => {
    for (const row of rows) {
      const is = Number(row.dataset.action) === action;
      row.classList.toggle("selected", is);
      row.setAttribute("aria-selected", String(is));
    }
    for (const spot of spots) spot.classList.toggle("selected", Number(spot.dataset.action) === action);
  });
  const choose = (element) => selection.select(Number(element.dataset.action), element);
  for (const element of [...rows, ...spots]) asButton(element, choose);
};
