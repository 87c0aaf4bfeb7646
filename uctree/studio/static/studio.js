// The page of the studio: what comes from the server goes to the parts of the page, and back.

import { makeCharts } from "/pages/charts.js";
import { byId, make } from "/pages/dom.js";
import { makeLine } from "/pages/line.js";
import { typed } from "/pages/numbers.js";
import { readOutline } from "/pages/outline.js";
import { makeSelection } from "/pages/selection.js";
import { makeTree } from "/pages/tree.js";
import { makeBoard, showDrawing } from "./board.js";
import { makeCandidates } from "./candidates.js";
import { showComparison } from "./comparison.js";
import { connect } from "./connection.js";
import { makeDoctor } from "./doctor.js";
import { makeEpisode } from "./episode.js";
import { makeWhy } from "./why.js";

const selection = makeSelection();
let position = null; // the latest one
let line = null, resting = null; // `resting`: the candidate that the pointer rests on

// --- the link: the address holds the episode, the seats and the settings ---

const readLink = () => {
  const given = new URLSearchParams(location.hash.slice(1));
  if (!given.has("game")) return {};
  try {
    return {
      game: given.get("game"),
      actions: JSON.parse(`[${given.get("actions") ?? ""}]`),
      ...(given.has("seats") ? { seats: given.get("seats").split(",") } : {}),
      ...(given.has("settings") ? { settings: JSON.parse(given.get("settings")) } : {}),
    };
  } catch {
    return {};
  }
};
const writeLink = () => {
  const given = new URLSearchParams({
    game: position.game, actions: JSON.stringify(position.episode).slice(1, -1),
    seats: position.seats.join(), settings: JSON.stringify(position.settings),
  });
  history.replaceState(null, "", `#${given}`);
};

// --- to the server ---

const send = connect({
  opened: () => send("open", readLink()),
  received: (message) => receivers[message.kind]?.(message),
  changed: (isConnected) => {
    byId("connection").textContent = isConnected ? "connected" : "connection lost, trying again";
    byId("connection").classList.toggle("lost", !isConnected);
  },
});
const settings = () => ({
  seconds: byId("seconds").value === "" ? null : Number(byId("seconds").value),
  num_simulations: byId("simulations").value === "" ? null : Number(byId("simulations").value),
  options: byId("options").value,
  by_hand: byId("by-hand").checked,
  even: byId("even").checked,
  teach: byId("teach").checked,
});
const configure = (event) => {
  event.preventDefault();
  send("configure", { settings: settings() });
};

byId("open-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const isSame = position && position.game === byId("game").value;
  send("open", { game: byId("game").value, ...(isSame ? { seats: position.seats, settings: position.settings } : {}) });
});
byId("settings").addEventListener("submit", configure);
byId("by-hand").addEventListener("change", configure);
byId("teach").addEventListener("change", configure);
byId("undo").addEventListener("click", () => send("undo"));
byId("hint").addEventListener("click", () => send("hint"));
byId("resign").addEventListener("click", () => send("resign"));
byId("pause").addEventListener("click", () => send("pause", { on: !position.paused }));
byId("think").addEventListener("click", () => send("think", { on: !position.thinking }));
byId("without").addEventListener("click", () => send("restrict", { excluded: [...position.excluded, selection.action] }));
byId("only").addEventListener("click", () => {
  const others = position.actions.map(([action]) => action).filter((action) => action !== selection.action);
  send("restrict", { excluded: others });
});
byId("all-actions").addEventListener("click", () => send("restrict", { excluded: [] }));
byId("keep").addEventListener("click", () => send("keep", { on: position.kept === null }));
byId("save-page").addEventListener("click", () => send("save", { what: "page" }));
byId("save-tree").addEventListener("click", () => send("save", { what: "tree" }));
addEventListener("hashchange", () => send("open", readLink()));
byId("problem-close").addEventListener("click", () => { byId("problem").hidden = true; });

// --- the parts of the page ---

const board = makeBoard({
  act: (action) => send("act", { ply: position.ply, action }),
  say: (text) => send("say", { ply: position.ply, text }),
});
const episode = makeEpisode({
  jump: (ply) => send("jump", { ply }),
  sit: (seats) => send("sit", { seats }),
  review: (on) => send("review", { on }),
  save: (what) => send("save", { what }),
});
const candidates = makeCandidates(selection, (action) => {
  resting = action;
  if (action === null) board.preview(null);
  else send("follow", { action });
});
selection.listen((action) => {
  if (action !== null) send("follow", { action });
  for (const id of ["without", "only"]) byId(id).disabled = action === null;
});
const variation = makeLine((index) => {
  const drawing = line.drawings[index];
  showDrawing(byId("line-drawing"), drawing ?? "");
  byId("line-board").hidden = Boolean(drawing);
  byId("line-board").textContent = line.texts[index];
});
const examine = makeDoctor((actions) => send("open", {
  game: byId("game").options[0].value, actions, seats: position.seats.map(() => "person"), partly: true,
}));
const charts = makeCharts(selection);
const tree = makeTree(selection);
const why = makeWhy((content) => send("explain", content));
let grows = false;
byId("grow").addEventListener("click", () => {
  grows = !grows;
  byId("grow").setAttribute("aria-pressed", String(grows));
  byId("tree-parts").hidden = !grows;
  send("grow", { on: grows });
});

// --- from the server ---

const whose = () => {
  const { over, resigned, returns, toPlay, seats, ply, words } = position;
  const paid = `returns ${returns.map((each) => +each.toPrecision(4)).join(", ")}`;
  if (resigned !== null) return `Player ${resigned} has resigned.`;
  if (over) return `The episode is over: ${paid}.`;
  const who = toPlay < 0 ? "Chance" : `Player ${toPlay} (${seats[toPlay]})`;
  return `${who} to move${ply < words.length ? ", in an earlier state" : ""}${returns.some((each) => each) ? `; ${paid}` : ""}`;
};
const isCurrent = (message) => position !== null && message.serial === position.serial;

const receivers = {
  hello: ({ games }) => {
    byId("game").replaceChildren(...games.map(({ game, about }) => {
      const option = new Option(game, game);
      option.title = about;
      return option;
    }));
    if (grows) send("grow", { on: true });
    why.again();
  },
  problem: ({ text }) => {
    byId("problem-text").textContent = text;
    byId("problem").hidden = false;
  },
  position: (next) => {
    const isNew = !position || next.serial !== position.serial || next.game !== position.game;
    position = next;
    byId("game").value = next.game;
    byId("about").textContent = byId("game").selectedOptions[0]?.title ?? "";
    byId("turn").textContent = whose();
    byId("pause").textContent = next.paused ? "go on" : "pause";
    byId("pause").setAttribute("aria-pressed", String(next.paused));
    byId("think").setAttribute("aria-pressed", String(next.thinking));
    byId("by-hand").checked = next.settings.by_hand;
    byId("seconds").value = next.settings.seconds ?? "";
    byId("simulations").value = next.settings.num_simulations ?? "";
    byId("options").value = next.settings.options;
    byId("even").checked = next.settings.even;
    byId("teach").checked = next.settings.teach;
    byId("fault").hidden = !next.fault;
    byId("fault").textContent = next.fault ? `The rules fail in this state: ${next.fault}` : "";
    byId("lesson").hidden = !next.lesson;
    byId("lesson").textContent = next.lesson;
    byId("all-actions").disabled = next.excluded.length === 0;
    byId("excluded").hidden = next.excluded.length === 0;
    byId("excluded").textContent = `without ${next.excluded.map((action) => new Map(next.actions).get(action)).join(", ")}`;
    byId("keep").setAttribute("aria-pressed", String(next.kept !== null));
    if (isNew) {
      board.preview(null);
      resting = null;
      selection.action = null;
      for (const id of ["without", "only"]) byId(id).disabled = true;
      byId("comparison").hidden = true;
      candidates.clear(next);
      charts.begin(next.players, next.toPlay);
      byId("charts").hidden = true;
      line = null;
      variation.show(null);
      why.clear();
      tree.clear();
      byId("tree-note").textContent = "";
      byId("problem").hidden = true;
    }
    board.show(next);
    if (isNew) board.shade([], null);
    episode.show(next);
    writeLink();
    document.documentElement.dataset.ready = "yes";
  },
  busy: (message) => {
    if (isCurrent(message) && !byId("search-status").textContent) byId("search-status").textContent = "the search is made ready";
  },
  frame: (frame) => {
    if (!isCurrent(frame)) return;
    candidates.show(frame, position);
    if (resting === null) board.shade(frame.shades, frame.chosen);
    episode.note(position.ply, frame.value);
    document.documentElement.dataset.frames = Number(document.documentElement.dataset.frames ?? 0) + 1;
    document.documentElement.dataset.searching = frame.status === "running" ? "yes" : "no";
  },
  history: (message) => {
    if (!isCurrent(message)) return;
    byId("charts").hidden = false;
    charts.show(message.history);
  },
  line: (message) => {
    if (!isCurrent(message)) return;
    const isSame = line !== null && line.action === message.line.action;
    line = message.line;
    variation.show(line, isSame);
    if (resting === line.action) board.preview(line.drawings[line.drawings.length - 1] ?? null);
  },
  why: (message) => { if (isCurrent(message)) why.show(message); },
  doctor: (message) => examine(message),
  comparison: (message) => { if (isCurrent(message)) showComparison(message.comparison); },
  file: ({ name, content }) => {
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([typed(content, Uint8Array)]));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  },
  tree: (message) => {
    if (!isCurrent(message)) return;
    tree.show({
      outline: readOutline(message.tree, position.players), texts: message.texts, boards: message.boards,
      toPlay: message.toPlay,
    });
    const least = message.leastVisits > 1 ? `visited at least ${message.leastVisits.toLocaleString("en")} times` : "visited";
    byId("tree-note").textContent = `${message.nodes.toLocaleString("en")} nodes that were ${least}`;
  },
};
