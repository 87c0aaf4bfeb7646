// The script of a result's page: what it does with the data that the page holds.

import { makeCharts } from "./charts.js";
import { byId } from "./dom.js";
import { makeLine } from "./line.js";
import { readOutline } from "./outline.js";
import { join, makeSelection } from "./selection.js";
import { makeSortable } from "./table.js";
import { makeTree } from "./tree.js";

const data = JSON.parse(byId("data").textContent);
const selection = makeSelection();

join(selection, [...document.querySelectorAll("tr[data-action]")], [...document.querySelectorAll(".spot[data-action]")]);
makeSortable(byId("actions"));
if (data.history.actions.length) {
  byId("charts").hidden = false;
  const charts = makeCharts(selection);
  charts.begin(data.players, data.toPlay);
  charts.show(data.history);
}
const line = makeLine((board) => {
  byId("line-board").textContent = board >= 0 ? data.boards[board] : "(this page does not have the state)";
});
selection.listen((action) => line.show(data.lines[action]));
if (data.tree) {
  byId("tree").hidden = false;
  makeTree(selection).show({
    outline: readOutline(data.tree, data.players), texts: data.texts, boards: data.boards, toPlay: data.toPlay,
  });
}
if (data.chosen !== null) selection.select(data.chosen, null);
document.documentElement.dataset.ready = "yes";
