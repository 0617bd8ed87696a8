"use strict";
(() => {
  const data = JSON.parse(document.getElementById("run-data").textContent);
  const root = document.documentElement;

  // Theme: the system's, until the reader chooses. The choice lives as long as the page: a file has no storage of its own.
  const theme = document.getElementById("theme");
  theme.addEventListener("change", () => {
    if (theme.value === "system") delete root.dataset.theme;
    else root.dataset.theme = theme.value;
  });
  document.getElementById("print").addEventListener("click", () => window.print());

  const rowsOf = (table) => [...table.tBodies[0].rows].filter((row) => !row.classList.contains("detail"));

  const collapse = (table) => {
    table.querySelectorAll("tr.detail").forEach((row) => row.remove());
    table.querySelectorAll("button[aria-expanded=true]").forEach((button) => button.setAttribute("aria-expanded", "false"));
  };

  // Missing values stay last in both directions; equal ones keep their order.
  const sort = (table, column, direction) => {
    collapse(table);
    const numeric = table.tHead.rows[0].cells[column].classList.contains("number");
    const key = (row) => row.cells[column].dataset.value;
    const rows = rowsOf(table);
    rows.sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
      const order = numeric ? Number(x) - Number(y) : x.localeCompare(y, "en", { numeric: true });
      return direction * order;
    });
    table.tBodies[0].append(...rows);
    [...table.tHead.rows[0].cells].forEach((cell, place) => {
      if (cell.querySelector("button")) {
        cell.setAttribute("aria-sort", place === column ? (direction > 0 ? "ascending" : "descending") : "none");
      }
    });
  };

  document.querySelectorAll("table.sortable").forEach((table) => {
    [...table.tHead.rows[0].cells].forEach((cell, place) => {
      const button = cell.querySelector("button");
      button.addEventListener("click", () => sort(table, place, cell.getAttribute("aria-sort") === "ascending" ? -1 : 1));
    });
  });

  document.querySelectorAll(".controls[data-table]").forEach((controls) => {
    const table = document.getElementById(controls.dataset.table);
    const text = controls.querySelector("input");
    const choice = controls.querySelector("select");
    const status = controls.querySelector("[role=status]");
    const apply = () => {
      collapse(table);
      const words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      const wanted = choice ? choice.value : "";
      let shown = 0;
      const rows = rowsOf(table);
      rows.forEach((row) => {
        const content = row.dataset.search;
        const fits = words.every((word) => content.includes(word)) && (!wanted || row.dataset.choice === wanted);
        row.hidden = !fits;
        shown += fits;
      });
      status.textContent = `${shown} of ${rows.length} shown`;
    };
    text.addEventListener("input", apply);
    if (choice) choice.addEventListener("change", apply);
    apply();
  });

  const element = (name, attributes = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };

  const SVG = "http://www.w3.org/2000/svg";
  const shape = (name, attributes, text = "") => {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    return node;
  };

  const brief = (value) => (value !== 0 && Math.abs(value) < 0.001 ? value.toExponential(1) : String(value));

  // One small line chart: epochs against one measure.
  const curve = (name, epochs, values) => {
    const points = epochs.map((epoch, place) => [epoch, values[place]]).filter(([, value]) => value !== null);
    if (points.length < 2) return "";
    const [width, height, left, bottom] = [420, 130, 56, 22];
    const xs = points.map((point) => point[0]);
    const ys = points.map((point) => point[1]);
    const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const x = (value) => left + ((value - x0) / (x1 - x0 || 1)) * (width - left - 8);
    const y = (value) => height - bottom - ((value - y0) / (y1 - y0 || 1)) * (height - bottom - 22);
    const label = `${name}: ${ys[0]} in epoch ${xs[0]}, ${ys[ys.length - 1]} in epoch ${xs[xs.length - 1]}`;
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, class: "curve", role: "img", "aria-label": label });
    const style = "font: 11px var(--font); fill: currentColor";
    svg.append(
      shape("line", { x1: left, x2: width - 8, y1: height - bottom, y2: height - bottom, stroke: "var(--line)" }),
      shape("path", {
        d: points.map((point, place) => `${place ? "L" : "M"}${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}`).join(""),
        fill: "none", stroke: "var(--accent)", "stroke-width": 1.6,
      }),
      shape("text", { x: left, y: 12, style: `${style}; font-weight: 600` }, name),
      shape("text", { x: left - 5, y: y(y1) + 4, "text-anchor": "end", style }, brief(y1)),
      shape("text", { x: left - 5, y: y(y0) + 4, "text-anchor": "end", style }, brief(y0)),
      shape("text", { x: left, y: height - 6, style }, `epoch ${x0}`),
      shape("text", { x: width - 8, y: height - 6, "text-anchor": "end", style }, String(x1)),
    );
    return svg;
  };

  const list = (entries) => {
    const node = element("dl", { class: "settings" });
    for (const [key, value] of entries) node.append(element("dt", {}, key), element("dd", {}, String(value ?? "—")));
    return node;
  };

  const detail = (name) => {
    const run = data.runs[name];
    const cell = element("td", { colspan: "20" });
    cell.append(element("h3", {}, name), element("p", { class: "note" }, "Command to repeat it:"), element("pre", {}, run.command));
    if (run.error) {
      cell.append(element("p", {}, `${run.error.type}: ${run.error.message}`), element("pre", {}, run.error.traceback));
    }
    const pair = element("div", { class: "pair" });
    const curves = element("div");
    for (const [key, values] of Object.entries(run.curves)) {
      if (key !== "epoch") curves.append(curve(key, run.curves.epoch, values));
    }
    if (curves.children.length) pair.append(curves);
    if (run.figure) {
      const image = element("img", { src: run.figure, alt: `Position figure of ${name}` });
      pair.append(element("figure", {}, image, element("figcaption", {}, "What the trained position module tells the network.")));
    }
    cell.append(pair);
    const measured = Object.entries({ ...run.metrics, ...run.diagnostics });
    if (measured.length) {
      const shown = measured.map(([key, value]) => [key, value === null ? "not a finite number" : Number(value.toPrecision(5))]);
      cell.append(element("details", {}, element("summary", {}, "Measured"), list(shown)));
    }
    const own = Object.entries(run.config);
    cell.append(
      element("details", { open: "" }, element("summary", {}, `Settings of its own (${own.length})`), list(own)),
      element("details", {}, element("summary", {}, "Settings that all runs share"), list(Object.entries(data.common))),
    );
    return element("tr", { class: "detail" }, cell);
  };

  const toggle = (button) => {
    const row = button.closest("tr");
    const open = button.getAttribute("aria-expanded") === "true";
    if (open) row.nextElementSibling.remove();
    else row.after(detail(button.dataset.run));
    button.setAttribute("aria-expanded", String(!open));
  };
  document.querySelectorAll("button[data-run]").forEach((button) => button.addEventListener("click", () => toggle(button)));
})();
