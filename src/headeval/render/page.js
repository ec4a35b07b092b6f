"use strict";
// One report, all of whose elements stand in `root`, and whose ids begin with what its data-report says.
const start = (root) => {
  const folded = () => root.closest("details:not([open])") !== null;
  const element = (id) => document.getElementById(`${root.dataset.report}${id}`);
  const data = JSON.parse(element("data").textContent);
  const colour = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const significant = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

  // --- what Python prepared: the texts of every step, one for each place on the page that changes

  const unpacked = ({ before, after, by, none, rest }) => {
    let last = "";
    return rest.split(by).map((part) => {
      if (part !== "") last = part === none ? "" : part;
      return before + last + after;
    });
  };
  const { outcome, steps } = data;
  const thresholds = steps.map(Number);
  const places = [];
  for (const [texts, perStep] of [[data.byOutcome, false], [data.byStep, true]]) {
    for (const [key, packed] of Object.entries(texts)) {
      const place = root.querySelector(`[data-cell="${key}"]`);
      if (place) places.push({ place, texts: unpacked(packed), perStep });
    }
  }
  const { falsePositives, missed, positives, negatives, prevalence } = data.points;
  const share = (part, whole) => (whole ? part / whole : null);
  const points = falsePositives.map((fp, index) => {
    const tp = positives - missed[index];
    return { fpr: share(fp, negatives), recall: share(tp, positives), precision: share(tp, tp + fp) };
  });
  let step = data.inUse;
  const point = () => points[outcome[step]];

  // --- costs: the only numbers computed here

  const cost = (index, costs) => {
    const falseAlarms = (1 - prevalence) * (share(falsePositives[index], negatives) ?? 0);
    const misses = prevalence * (share(missed[index], positives) ?? 0);
    return 1000 * (costs.falsePositive * falseAlarms + costs.missed * misses);
  };
  let costs = { falsePositive: 1, missed: 1 };
  let costBy = [];
  let cheapest = 0;
  const recount = () => {
    const value = (id) => Math.max(0, Number(element(id).value) || 0);
    costs = { falsePositive: value("cost-false-positive"), missed: value("cost-missed") };
    const byOutcome = points.map((_, index) => cost(index, costs));
    costBy = outcome.map((index) => byOutcome[index]);
    cheapest = costBy.reduce((best, value, index) => (value < costBy[best] ? index : best), 0);
  };
  const showCost = () => {
    element("cost-here").textContent =
      `At threshold ${steps[step]}: ${significant.format(costBy[step])} per 1,000 rows${data.costNote}.`;
    element("cost-lowest").textContent =
      `Lowest on these rows: ${significant.format(costBy[cheapest])} at threshold ${steps[cheapest]}. ` +
      "That one is chosen on this very sample, so expect more on new rows.";
    element("to-cheapest").disabled = step === cheapest;
  };

  // --- the slider

  const slider = element("slider");
  const typed = element("typed");
  const charts = [];
  let speaking;
  const spoken = () => {
    const parts = data.spoken.map(({ name, keys }) => {
      const texts = keys.map((key) => root.querySelector(`[data-cell="${key}"]`).textContent).filter(Boolean);
      return [name, ...texts].join(" ");
    });
    return parts.join("; ");
  };
  const show = (wanted, note = "") => {
    step = Math.min(Math.max(wanted, 0), steps.length - 1);
    for (const { place, texts, perStep } of places) {
      const text = texts[perStep ? step : outcome[step]];
      if (place.textContent !== text) place.textContent = text;
    }
    slider.value = step;
    slider.setAttribute("aria-valuetext", steps[step]);
    if (document.activeElement !== typed || note) typed.value = steps[step];
    element("previous").disabled = outcome[step] === 0;
    element("next").disabled = outcome[step] === points.length - 1;
    element("reset").disabled = step === data.inUse;
    showCost();
    for (const { plot, describe } of charts) {
      plot.redraw(false, false);
      describe();
    }
    const which = step === data.inUse ? " (in use)" : `, not the one in use (${steps[data.inUse]})`;
    const line = `${note}At threshold ${steps[step]}${which}: ${spoken()}.`;
    // Said once the hand rests, so that a screen reader is not flooded; seen at once.
    element("status").textContent = line;
    clearTimeout(speaking);
    speaking = setTimeout(() => { element("said").textContent = line; }, 400);
  };
  const nearest = (distance) => {
    let best = 0;
    steps.forEach((_, index) => { if (distance(index) < distance(best)) best = index; });
    return best;
  };
  const toThreshold = (value) => {
    const index = nearest((at) => Math.abs(thresholds[at] - value));
    const off = thresholds[index] === value ? "" : `${value} lies between two steps, the nearest is shown. `;
    show(index, off);
  };
  const toOutcome = (direction) => {
    let index = step;
    while (outcome[index + direction] !== undefined && outcome[index] === outcome[step]) index += direction;
    show(index);
  };
  slider.max = steps.length - 1;
  slider.addEventListener("input", () => show(Number(slider.value)));
  typed.addEventListener("change", () => {
    const value = Number(typed.value);
    if (typed.value.trim() !== "" && value >= 0 && value <= 1) toThreshold(value);
    else show(step, "A threshold is a number between 0 and 1; it stays what it was. ");
    typed.value = steps[step];
  });
  element("previous").addEventListener("click", () => toOutcome(-1));
  element("next").addEventListener("click", () => toOutcome(1));
  element("reset").addEventListener("click", () => show(data.inUse));
  element("to-cheapest").addEventListener("click", () => show(cheapest));

  // --- charts

  const percent = (value) => `${significant.format(100 * value)} %`;
  const four = (value) => (value == null ? "–" : value.toFixed(4));
  const font = "12px system-ui, sans-serif";
  const fifths = [0, 0.2, 0.4, 0.6, 0.8, 1];
  const axis = (label, more = {}) => ({
    label, font, labelFont: font, labelSize: 20, labelGap: 2, size: 34, gap: 4, stroke: colour("--quiet"),
    grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, splits: () => fifths, ...more,
  });
  const unit = { time: false, range: [-0.015, 1.015] };
  const line = (name, more = {}) => ({ stroke: colour(name), width: 2, points: { show: false }, ...more });
  const edge = { stroke: "transparent", width: 0, points: { show: false } };
  const dashed = [7, 4];
  const dotted = [2, 3];

  const spot = (u, x, y, outline) => {
    if (x == null || y == null) return;
    const { ctx } = u;
    ctx.save();
    ctx.beginPath();
    outline(ctx, u.valToPos(x, "x", true), u.valToPos(y, "y", true), uPlot.pxRatio);
    ctx.closePath();
    ctx.lineWidth = 2 * uPlot.pxRatio;
    ctx.fill();
    ctx.stroke();
    ctx.restore();
  };
  const diamond = (u, x, y) => spot(u, x, y, (ctx, left, top, scale) => {
    const half = 7 * scale;
    ctx.moveTo(left, top - half);
    ctx.lineTo(left + half, top);
    ctx.lineTo(left, top + half);
    ctx.lineTo(left - half, top);
    ctx.fillStyle = colour("--mark")();
    ctx.strokeStyle = colour("--paper")();
  });
  const ring = (u, x, y) => spot(u, x, y, (ctx, left, top, scale) => {
    ctx.arc(left, top, 5 * scale, 0, 2 * Math.PI);
    ctx.fillStyle = colour("--paper")();
    ctx.strokeStyle = colour("--mark")();
  });
  const upright = (u, x, from, to, name, width, dash = []) => {
    const { ctx } = u;
    ctx.save();
    ctx.beginPath();
    ctx.moveTo(u.valToPos(x, "x", true), from);
    ctx.lineTo(u.valToPos(x, "x", true), to);
    ctx.strokeStyle = colour(name)();
    ctx.lineWidth = width * uPlot.pxRatio;
    ctx.setLineDash(dash.map((length) => length * uPlot.pxRatio));
    ctx.stroke();
    ctx.restore();
  };
  const atThreshold = (u) => {
    upright(u, thresholds[step], u.bbox.top, u.bbox.top + u.bbox.height, "--mark", 2);
  };

  const draw = (id, values, options, { describe = () => "", readout, click, height = 0.72 } = {}) => {
    const holder = element(id);
    if (!holder) return null;
    const label = holder.getAttribute("aria-label");
    const line = holder.parentElement.querySelector(".readout");
    const size = (width = Math.max(200, Math.floor(holder.clientWidth))) => {
      return { width, height: height > 1 ? height : Math.round(width * height) };
    };
    const tell = (u) => {
      if (line && readout) line.textContent = u.cursor.idx == null ? "" : readout(u.cursor.idx);
    };
    const plot = new uPlot({
      ...size(), legend: { show: false }, padding: [8, 8, 0, 0],
      cursor: { drag: { x: false, y: false, setScale: false }, points: { size: 6 }, y: false },
      ...options, hooks: { ...options.hooks, setCursor: [tell] },
    }, values, holder);
    if (click) {
      plot.over.addEventListener("click", (event) => {
        const box = plot.over.getBoundingClientRect();
        click(plot.posToVal(event.clientX - box.left, "x"), plot.posToVal(event.clientY - box.top, "y"));
      });
    }
    charts.push({ plot, describe: () => holder.setAttribute("aria-label", `${label}${describe()}`), size });
    return plot;
  };
  const distance = (x, y) => (at) => {
    const { [x.name]: left, [y.name]: top } = points[outcome[at]];
    return left == null || top == null ? Infinity : Math.hypot(left - x.value, top - y.value);
  };
  const bounds = (curve, index) => (curve.lower ? `, band ${four(curve.lower[index])} to ${four(curve.upper[index])}` : "");

  const curveChart = (id, curve, { x, y, names, base }) => {
    const values = [curve.x, curve.y, base, ...(curve.lower ? [curve.lower, curve.upper] : [])];
    const series = [{}, line("--first"), line("--quiet", { width: 1.2, dash: dashed })];
    if (curve.lower) series.push(edge, edge);
    const options = {
      scales: { x: unit, y: { range: unit.range } }, series,
      bands: curve.lower ? [{ series: [4, 3], fill: colour("--first-band") }] : [],
      axes: [axis(names[0]), axis(names[1])],
      hooks: { draw: [(u) => diamond(u, point()[x], point()[y])] },
    };
    draw(id, values, options, {
      height: 0.86,
      describe: () => ` At threshold ${steps[step]}: ${names[0]} ${four(point()[x])}, ${names[1]} ${four(point()[y])}.`,
      readout: (index) => `${names[0]} ${four(curve.x[index])}: ${names[1]} ${four(curve.y[index])}${bounds(curve, index)}`,
      click: (left, top) => show(nearest(distance({ name: x, value: left }, { name: y, value: top }))),
    });
  };

  const reliabilityChart = (chart) => {
    const bars = (u) => {
      for (const { x, lower, upper } of chart.bars) {
        upright(u, x, u.valToPos(lower, "y", true), u.valToPos(upper, "y", true), "--first", 1.5);
      }
    };
    const dots = (name, fill) => ({ show: true, size: 8, width: 2, stroke: colour(name), fill: colour(fill) });
    const series = [
      {},
      line("--quiet", { width: 1.2, dash: dashed, spanGaps: true }),
      line("--first", { spanGaps: true, points: dots("--first", "--first") }),
    ];
    const values = [chart.x, chart.x, chart.after];
    if (chart.before) {
      values.push(chart.before);
      series.push(line("--second", { width: 1.5, dash: dotted, spanGaps: true, points: dots("--second", "--paper") }));
    }
    const options = {
      scales: { x: unit, y: { range: unit.range } }, series,
      axes: [axis("mean p of a bin"), axis("share of positives")],
      hooks: { draw: [bars] },
    };
    draw("reliability", values, options, {
      height: 0.86,
      readout: (index) => [
        [chart.after[index], "share positive"], [chart.before?.[index], "before calibration"],
      ].filter(([value]) => value != null).map(([value, name]) => `mean p ${four(chart.x[index])}: ${name} ${four(value)}`).join("; "),
    });
    const counts = {
      scales: { x: unit, y: { range: (u, low, high) => [0, high || 1] } },
      series: [{}, line("--first", { width: 1, fill: colour("--first-band"), paths: uPlot.paths.stepped({ align: 1 }) })],
      axes: [axis("", { size: 20, labelSize: 0 }), axis("rows", { splits: (u, at, low, high) => [0, high], values: (u, all) => all.map((value) => significant.format(value)) })],
    };
    draw("bins", [chart.edges, chart.counts], counts, {
      height: 110,
      readout: (index) => (index + 1 < chart.edges.length ? `p from ${chart.edges[index]} to ${chart.edges[index + 1]}: ${significant.format(chart.counts[index])} rows` : ""),
    });
  };

  const histogramChart = (chart) => {
    const stepped = uPlot.paths.stepped({ align: 1 });
    const options = {
      scales: { x: unit, y: { distr: 100, fwd: Math.sqrt, bwd: (value) => value * value, range: (u, low, high) => [0, high || 1] } },
      series: [
        {},
        line("--first", { width: 1.5, dash: dashed, fill: colour("--first-band"), paths: stepped }),
        line("--second", { width: 2, fill: colour("--second-band"), paths: stepped }),
      ],
      axes: [
        axis("predicted probability"),
        axis("share of the class", {
          splits: (u, at, low, high) => [0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1].filter((value) => value <= high),
          values: (u, all) => all.map(percent), size: 44,
        }),
      ],
      hooks: { draw: [atThreshold] },
    };
    draw("histogram", [chart.edges, chart.negatives, chart.positives], options, {
      height: 0.72,
      describe: () => ` The threshold stands at ${steps[step]}.`,
      readout: (index) => (index + 1 < chart.edges.length
        ? `p from ${chart.edges[index]} to ${chart.edges[index + 1]}: ${chart.rows[0][index]} negative, ${chart.rows[1][index]} positive rows`
        : ""),
      click: (left) => show(nearest((at) => Math.abs(thresholds[at] - left))),
    });
  };

  const costChart = () => {
    const options = {
      scales: { x: unit, y: { range: (u, low, high) => [0, (high || 1) * 1.05] } },
      series: [{}, line("--first", { width: 2, paths: uPlot.paths.stepped({ align: -1 }) })],
      axes: [axis("threshold"), axis("cost per 1,000 rows", { splits: undefined, values: (u, all) => all.map((value) => significant.format(value)), size: 48 })],
      hooks: { draw: [atThreshold, (u) => ring(u, thresholds[cheapest], costBy[cheapest])] },
    };
    return draw("costs", [thresholds, costBy], options, {
      height: 0.72,
      describe: () => ` At threshold ${steps[step]}: ${significant.format(costBy[step])}; lowest: ${significant.format(costBy[cheapest])} at ${steps[cheapest]}.`,
      readout: (index) => `threshold ${steps[index]}: ${significant.format(costBy[index])} per 1,000 rows`,
      click: (left) => show(nearest((at) => Math.abs(thresholds[at] - left))),
    });
  };

  for (const part of root.querySelectorAll("[data-needs-script]")) part.hidden = false;
  recount();
  const { roc, pr } = data.charts;
  if (roc) {
    curveChart("roc", roc, { x: "fpr", y: "recall", names: ["false-positive rate", "recall"], base: roc.x });
    const level = pr.x.map(() => pr.prevalence);
    curveChart("pr", pr, { x: "recall", y: "precision", names: ["recall", "precision"], base: level });
  }
  reliabilityChart(data.charts.reliability);
  histogramChart(data.charts.histogram);
  const costPlot = costChart();
  for (const id of ["cost-false-positive", "cost-missed"]) {
    element(id).addEventListener("input", () => {
      recount();
      costPlot.setData([thresholds, costBy]);
      show(step);
    });
  }

  // --- the page around the charts: width, colours, paper

  const PAPER_WIDTH = 340; // half of A4: drawn at that size, the texts in the charts stay as large as those around
  const onPaper = () => matchMedia("print").matches;
  const fit = (printing) => {
    if (folded()) return;
    for (const { plot, size } of charts) {
      const { width, height } = size(printing ? PAPER_WIDTH : undefined);
      if (width !== plot.width) plot.setSize({ width, height });
      else plot.redraw(false, false); // for colours that have changed
    }
  };
  new ResizeObserver(() => {
    if (!onPaper()) fit(false);
  }).observe(root);
  root.closest("details")?.addEventListener("toggle", () => fit(onPaper())); // width and colours may have changed meanwhile
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => fit(onPaper()));
  matchMedia("print").addEventListener("change", () => fit(onPaper()));
  addEventListener("beforeprint", () => fit(true));
  addEventListener("afterprint", () => fit(false));
  show(data.inUse);
};
for (const root of document.querySelectorAll("[data-report]")) {
  // Charts need a width, which a part that is folded away has only once it is opened.
  const fold = root.closest("details:not([open])");
  if (fold) fold.addEventListener("toggle", () => start(root), { once: true });
  else start(root);
}
