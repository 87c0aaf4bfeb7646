// A table that is sorted by any of its columns: its cells have a number as `data-key`, or text.

export const makeSortable = (table) => {
  for (const button of table.querySelectorAll("th button")) {
    button.addEventListener("click", () => {
      const head = button.closest("th");
      const column = head.cellIndex;
      const falling = head.getAttribute("aria-sort") !== "descending";
      for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      const rows = [...table.querySelectorAll("tr[data-action]")];
      const key = (row) => Number(row.children[column].dataset.key);
      const text = (row) => row.children[column].textContent;
      const isText = rows.some((row) => row.children[column].dataset.key === undefined);
      rows.sort((a, b) => {
        const order = isText ? text(a).localeCompare(text(b), "en", { numeric: true }) : key(a) - key(b);
        return falling ? -order : order;
      });
      rows[0]?.parentNode.append(...rows);
    });
  }
};
