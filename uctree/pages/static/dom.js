// Elements of a page. Texts are set as text, never as markup.

export const byId = (id) => document.getElementById(id);

export const make = (name, text, className) => {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
};

export const svg = (name, attributes, text) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
};

export const button = (text, onClick) => {
  const element = make("button", text);
  element.type = "button";
  element.addEventListener("click", () => onClick(element));
  return element;
};

// Lets a click, Enter or the space bar call `choose` with the element.
export const asButton = (element, choose) => {
  element.tabIndex = 0;
  element.addEventListener("click", () => choose(element));
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(element); }
  });
};
