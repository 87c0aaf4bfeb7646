// The nodes of a tree as arrays, as the server packs them.

import { typed } from "./numbers.js";

// Nodes are in breadth-first order, the root first; siblings are adjacent, the most visited first.
export const readOutline = (source, players) => {
  const size = source.size, parent = typed(source.parent, Int32Array);
  const first = new Int32Array(size).fill(-1), children = new Int32Array(size), depth = new Int32Array(size);
  let deepest = 0;
  for (let node = 1; node < size; node++) {
    const above = parent[node];
    if (first[above] < 0) first[above] = node;
    children[above]++;
    depth[node] = depth[above] + 1;
    if (depth[node] > deepest) deepest = depth[node];
  }
  return {
    size, players, parent, first, children, depth, deepest,
    action: typed(source.action, Int32Array),
    visits: typed(source.visits, Float64Array),
    q: typed(source.q, Float32Array), // players numbers for each node
    textOf: typed(source.text, Int32Array), // index of its action's text, -1 if only the number is known
    prior: source.prior && typed(source.prior, Float32Array),
    proven: source.proven && typed(source.proven, Float32Array), // NaN if not proven
    sameAs: source.sameAs && typed(source.sameAs, Int32Array), // where a repeated node has its children
    known: new Map(source.known.map((entry) => [entry[0], entry])), // [node, board, who is to move]
  };
};

// For each node the one with the same actions in an earlier outline of the same root; -1 if it is new.
export const nodesBefore = (outline, earlier) => {
  const before = new Int32Array(outline.size).fill(-1), places = new Map();
  const key = (above, action) => above * 0x100000000 + action;
  for (let node = 1; node < earlier.size; node++) places.set(key(earlier.parent[node], earlier.action[node]), node);
  before[0] = 0;
  for (let node = 1; node < outline.size; node++) {
    const above = before[outline.parent[node]];
    if (above >= 0) before[node] = places.get(key(above, outline.action[node])) ?? -1;
  }
  return before;
};
