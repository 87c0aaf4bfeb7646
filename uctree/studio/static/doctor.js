// The file of a game that is being written: whether it loads, and what the doctor finds.

import { button, byId, make } from "/pages/dom.js";

// `open(actions)` shows the state after some actions of a finding.
export const makeDoctor = (open) => ({ file, version, fault, checking, headline, findings }) => {
  byId("doctor").hidden = false;
  byId("doctor").dataset.version = version;
  byId("doctor").dataset.checked = fault || !checking ? "yes" : "no";
  byId("doctor-text").textContent = fault ? `${file} cannot be loaded: ${fault}`
    : checking ? `${file}: the doctor examines version ${version}` : headline;
  byId("findings").replaceChildren(...findings.map((finding) => {
    const item = make("li"), text = make("span", `${finding.severity}: ${finding.rule}. ${finding.message} ${finding.cure}`);
    item.className = finding.severity;
    item.append(text, button(finding.actions.length ? `show it, after ${finding.actions.length} actions` : "show the start", () => open(finding.actions)));
    return item;
  }));
};
