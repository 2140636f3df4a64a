"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const palette = ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#ff8ab7", "#a463f2", "#97bbf5", "#9c6b4e"];
  const reds = ["#ff725c", "#efb118", "#a463f2", "#ff8ab7", "#9c6b4e"];
  const rest = "#9aa2ad";
  const charts = [];
  const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
  const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const ms = (value) => (value >= 1000 ? `${whole.format(value / 1000)} s` : `${whole.format(value)} ms`);

  function options(extra) {
    const axis = (more) => ({
      grid: { color: css("--line"), drawTicks: false }, border: { display: false },
      ticks: { color: css("--soft"), padding: 8, font: { size: 11.5 }, ...(more.ticks || {}) }, ...more.axis,
    });
    const quiet = { axis: { grid: { display: false } } };
    const found = {
      responsive: true, maintainAspectRatio: false, animation: false, interaction: { mode: "index", intersect: false },
      indexAxis: extra.sideways ? "y" : "x",
      scales: extra.scales ? extra.scales(axis) : { x: axis(quiet), y: axis({ ticks: { callback: (v) => short.format(v) } }) },
      plugins: {
        legend: {
          display: extra.legend !== false, position: "bottom", align: "start",
          labels: { color: css("--soft"), boxWidth: 9, boxHeight: 9, padding: 14, useBorderRadius: true, borderRadius: 2, font: { size: 12 } },
        },
        tooltip: {
          backgroundColor: css("--card"), titleColor: css("--ink"), bodyColor: css("--ink"), borderColor: css("--line"), borderWidth: 1,
          padding: 10, boxPadding: 5, usePointStyle: true, filter: (item) => item.raw !== 0, ...(extra.tooltip || {}),
        },
      },
    };
    return found;
  }

  function draw(id, make) {
    const canvas = document.getElementById(id);
    if (canvas) charts.push(() => new Chart(canvas, make()));
  }

  const stacked = (axis) => ({
    x: axis({ axis: { stacked: true, grid: { display: false } }, ticks: { maxRotation: 0, autoSkipPadding: 18 } }),
    y: axis({ axis: { stacked: true }, ticks: { callback: (v) => short.format(v) } }),
  });
  const bars = (label, values, color) => ({ label, data: values, backgroundColor: color, borderRadius: 2, maxBarThickness: 34, categoryPercentage: 0.82 });

  draw("calls", () => ({
    type: "bar",
    data: { labels: data.labels, datasets: data.packs.map((pack, n) => bars(pack.name, pack.calls, pack.rest ? rest : palette[n % palette.length])) },
    options: options({ scales: stacked }),
  }));
  draw("kept", () => ({
    type: "bar",
    data: { labels: data.labels, datasets: [bars("results not returned", data.kept.results, palette[0]), bars("definitions not sent", data.kept.definitions, palette[3])] },
    options: options({ scales: stacked }),
  }));
  draw("per-run", () => ({
    type: "bar",
    data: { labels: data.per_run.map((bin) => bin[0]), datasets: [bars("runs", data.per_run.map((bin) => bin[1]), palette[0])] },
    options: options({ legend: false, tooltip: { callbacks: { title: (items) => `${items[0].label} calls` } } }),
  }));
  const named = (axis) => axis({ axis: { grid: { display: false } }, ticks: { autoSkip: false, font: { size: 11.5 }, callback(v) {
    const text = String(this.getLabelForValue(v));
    return text.length > 26 ? `${text.slice(0, 25)}…` : text;
  } } });
  draw("latency", () => ({
    type: "bar",
    data: {
      labels: data.latency.map((row) => row[0]),
      datasets: [{ label: "p50 to p95", data: data.latency.map((row) => [row[1], row[2]]), backgroundColor: palette[0], borderRadius: 3, borderSkipped: false, maxBarThickness: 12 }],
    },
    options: options({
      sideways: true, legend: false, tooltip: { callbacks: { label: (item) => ` p50 ${ms(item.raw[0])}, p95 ${ms(item.raw[1])}` } },
      scales: (axis) => ({ y: named(axis), x: { ...axis({ ticks: { maxRotation: 0, callback: (v) => (Math.log10(v) % 1 === 0 ? ms(v) : null) } }), type: "logarithmic" } }),
    }),
  }));
  draw("errors", () => ({
    type: "bar",
    data: { labels: data.errors.tools, datasets: data.errors.types.map((type, n) => ({ ...bars(type.name, type.counts, type.rest ? rest : reds[n % reds.length]), maxBarThickness: 14 })) },
    options: options({
      sideways: true,
      scales: (axis) => ({ y: { ...named(axis), stacked: true }, x: { ...axis({ ticks: { precision: 0, callback: (v) => short.format(v) } }), stacked: true } }),
    }),
  }));
  draw("clients", () => ({
    type: "doughnut",
    data: { labels: data.clients.map((row) => row[0]), datasets: [{ data: data.clients.map((row) => row[1]), backgroundColor: palette, borderColor: css("--card"), borderWidth: 2 }] },
    options: { ...options({ scales: () => ({}) }), cutout: "66%", interaction: { mode: "nearest", intersect: true } },
  }));

  let shown = [];
  function show(theme) {
    root.dataset.theme = theme;
    shown.forEach((chart) => chart.destroy());
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    shown = charts.map((make) => make());
  }
  const wanted = () => root.dataset.chosen || (dark.matches ? "dark" : "light");
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.chosen = root.dataset.theme === "dark" ? "light" : "dark";
    show(wanted());
  });
  dark.addEventListener("change", () => show(wanted()));
  addEventListener("beforeprint", () => show("light"));
  addEventListener("afterprint", () => show(wanted()));
  show(wanted());
  root.dataset.charts = String(shown.length);

  function sort(head) {
    const table = head.closest("table"), body = table.tBodies[0], column = head.cellIndex;
    const up = head.getAttribute("aria-sort") === "descending";
    table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const compare = head.classList.contains("number") ? (a, b) => key(a) - key(b) : (a, b) => key(b).localeCompare(key(a));
    [...body.rows].sort((a, b) => (up ? compare(a, b) : compare(b, a))).forEach((row) => body.append(row));
  }
  document.querySelectorAll("th").forEach((head) => {
    head.tabIndex = 0;
    head.addEventListener("click", () => sort(head));
    head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(head); });
  });
})();
