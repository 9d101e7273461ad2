// What the pages do in a browser: local times, charts, searches that go on, keys. Without it they can be read all the same.
"use strict";

// --- times: the server writes UTC, the browser's zone is shown, UTC stays in the title ------------------------------

function localTimes(root) {
  for (const time of root.querySelectorAll("time:not([title])")) {
    const moment = new Date(time.dateTime);
    if (isNaN(moment)) continue;
    const two = (number, width = 2) => String(number).padStart(width, "0");
    time.title = time.textContent;
    time.textContent = `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())} ` +
      `${two(moment.getHours())}:${two(moment.getMinutes())}:${two(moment.getSeconds())}.${two(moment.getMilliseconds(), 3)}`;
  }
}

// --- parts that come anew: not while nobody looks, nor under the hands of who does ----------------------------------

function isInUse(live) {
  const selection = document.getSelection();
  return live.contains(document.activeElement) || live.querySelector("details[open]") ||
    (selection && !selection.isCollapsed && live.contains(selection.anchorNode));
}

document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden || isInUse(event.target)) event.preventDefault();
});
document.addEventListener("htmx:afterSwap", () => arrived(document));

// What has come into the page: times in the browser's zone, columns' names in cells, keys for what scrolls.
function arrived(root) {
  localTimes(root);
  nameCells(root);
  reachable();
}

// --- on a telephone a row is a card, in which each cell has the name of its column ----------------------------------

function nameCells(root) {
  for (const table of root.querySelectorAll(".wide table")) {
    const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    for (const row of table.tBodies[0] ? table.tBodies[0].rows : []) {
      let column = 0;
      for (const cell of row.cells) {
        if (cell.tagName === "TD" && cell.colSpan === 1 && cell.dataset.label === undefined) {
          cell.dataset.label = names[column] || "";
          cell.classList.toggle("nothing", !cell.textContent.trim());
        }
        column += cell.colSpan;
      }
    }
  }
}

// --- what is copied by a click ---------------------------------------------------------------------------------------

async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const place = document.createElement("textarea"); // a page that came without TLS from elsewhere has no clipboard
  place.value = text;
  document.body.append(place);
  place.select();
  document.execCommand("copy");
  place.remove();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await copied(button.dataset.copy);
  button.setAttribute("aria-label", "Copied");
  setTimeout(() => button.setAttribute("aria-label", "Copy"), 2000);
});

// --- a record opens below its row ------------------------------------------------------------------------------------

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-record]");
  if (!button) return;
  const row = button.closest("tr");
  const isOpen = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!isOpen));
  if (isOpen) return row.nextElementSibling.remove();
  const opened = document.createElement("tr");
  const cell = opened.insertCell();
  opened.className = "opened";
  cell.colSpan = row.cells.length;
  cell.textContent = "…";
  row.after(opened);
  try {
    const answer = await fetch(button.dataset.record);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    cell.replaceChildren(page.querySelector("#record") || page.querySelector("main"));
  } catch (error) {
    cell.textContent = `The broker does not answer: ${error.message}`;
  }
  arrived(cell);
});

// --- what is wider than its place: keys scroll it, once it can be reached by them ------------------------------------

function reachable() {
  for (const place of document.querySelectorAll(".wide, pre")) {
    const scrolls = place.scrollWidth > place.clientWidth || place.scrollHeight > place.clientHeight;
    if (scrolls) place.tabIndex = 0; else place.removeAttribute("tabindex");
  }
}

addEventListener("resize", reachable);

// --- charts ---------------------------------------------------------------------------------------------------------

const NAMES = {
  bytes_in: "in", bytes_out: "out", messages_in: "records/s", requests: "requests/s", errors: "errors/s",
  connections: "connections", loop_lag_ms: "ms late", lag: "records behind",
};
const BYTES = ["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"];
const STEPS = { // round in the unit that is shown
  bytes: BYTES.flatMap((_, unit) => [1, 2, 5, 10, 20, 50, 100, 200, 500].map((step) => step * 1024 ** unit)),
  number: [...Array(16).keys()].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** (power - 1))),
  count: [...Array(15).keys()].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** power)),
};
const SECONDS = [1, 5, 10, 15, 30, 60, 300, 600, 900, 1800, 3600];
const GLYPH = 7; // pixels of a sign on an axis

function inUnit(unit) {
  return (value) => {
    if (value === null || value === undefined) return "–";
    if (unit !== "bytes") return value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 2 : 0 });
    let place = 0;
    while (value >= 1024 && place < BYTES.length - 1) { value /= 1024; place++; }
    return `${Number(value.toFixed(place && value < 100 ? 1 : 0))} ${BYTES[place]}`;
  };
}

function clock(seconds, isShort) {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB", isShort ? { hour: "2-digit", minute: "2-digit" } : {});
}

// A line needs two points: one between two gaps is drawn as a dot.
function alone(values) {
  const isGap = (place) => values[place] === null || values[place] === undefined;
  return values.map((_, place) => place).filter((place) => !isGap(place) && isGap(place - 1) && isGap(place + 1));
}

// A colour of the design as a canvas knows it.
function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

class Chart {
  constructor(place) {
    this.place = place;
    this.names = place.dataset.series.split(",");
    this.plot = null;
    this.legend = document.createElement("ul");
    this.legend.className = "legend";
    this.legend.append(...this.names.map(() => document.createElement("li")));
    place.closest("figure").querySelector("figcaption").append(this.legend);
    new ResizeObserver(() => this.plot && this.plot.setSize(this.size())).observe(place);
  }

  size() {
    return { width: Math.max(this.place.clientWidth, 120), height: this.place.clientHeight || 150 };
  }

  draw(data) {
    if (this.plot) return this.plot.setData(data);
    const show = inUnit(this.place.dataset.unit);
    const axis = { stroke: colour("--muted-foreground"), grid: { stroke: colour("--border"), width: 1 }, ticks: { show: false } };
    const isLong = () => this.plot && this.plot.scales.x.max - this.plot.scales.x.min > 600;
    this.plot = new uPlot({
      ...this.size(),
      padding: [8, 12, 0, 0],
      cursor: { y: false },
      legend: { show: false },
      hooks: { setCursor: [() => this.tell()], setData: [() => this.tell()] },
      scales: { y: { range: (plot, low, high) => [0, Math.max(high * 1.1, 1)] } },
      axes: [
        { ...axis, size: 26, space: 90, incrs: SECONDS, values: (plot, moments) => moments.map((moment) => clock(moment, isLong())) },
        {
          ...axis, incrs: STEPS[this.place.dataset.unit] || STEPS.number,
          size: (plot, values) => 16 + GLYPH * Math.max(3, ...(values || []).map((text) => text.length)),
          values: (plot, values) => values.map(show),
        },
      ],
      series: [{}, ...this.names.map((name, place) => ({
        stroke: colour(`--series-${place}`), width: 1.75, points: { show: false, size: 4, filter: (plot, number) => alone(plot.data[number]) },
      }))],
    }, data, this.place);
    this.tell();
  }

  // Each series with its value: where the pointer is, else the newest.
  tell() {
    if (!this.plot) return;
    const { data, cursor } = this.plot;
    const at = cursor.idx ?? data[0].length - 1;
    const show = inUnit(this.place.dataset.unit);
    this.names.forEach((name, place) => {
      const words = `${NAMES[name] || name} ${show(data[place + 1][at])}`;
      if (this.legend.children[place].textContent !== words) this.legend.children[place].textContent = words;
    });
  }

  again() {
    if (this.plot) this.plot.destroy();
    this.plot = null;
  }

  show(history) {
    this.draw([history.times, ...this.names.map((name) => history.values[history.series.indexOf(name)])]);
  }
}

function startCharts() {
  const charts = [...document.querySelectorAll(".chart")].map((place) => new Chart(place));
  if (!charts.length) return;
  let span = "minute";
  const series = charts.flatMap((chart) => chart.names);
  const of = charts[0].place.dataset.of; // a topic or group, whose minutes are asked for in place of the broker's seconds
  const about = of ? `&${of}` : "";
  const look = async () => {
    if (document.hidden) return;
    try { // one request for all charts; where the broker is away, the next look may find it
      const answer = await fetch(`/history.json?span=${span}&series=${series}${about}`);
      if (!answer.ok) return;
      const history = await answer.json();
      for (const chart of charts) chart.show(history);
    } catch { return; }
  };
  for (const button of document.querySelectorAll("[data-span]")) {
    button.addEventListener("click", () => {
      span = button.dataset.span;
      for (const each of document.querySelectorAll("[data-span]")) each.setAttribute("aria-pressed", String(each === button));
      look();
    });
  }
  document.addEventListener("ottla:theme", () => { charts.forEach((chart) => chart.again()); look(); });
  look();
  setInterval(look, about ? 20000 : 2000);
}

// --- a search that goes on ------------------------------------------------------------------------------------------

function startSearch() {
  const progress = document.querySelector("#progress[data-search]");
  if (!progress) return;
  const rows = document.querySelector("#rows");
  const more = document.querySelector("#more");
  const already = rows.querySelectorAll("tr").length;
  const source = new EventSource(progress.dataset.search);
  const bar = document.createElement("progress");
  const text = document.createElement("span");
  const stop = document.createElement("button");
  bar.max = 100;
  bar.value = 0;
  bar.setAttribute("aria-label", "How much was read");
  stop.type = "button";
  stop.textContent = "Stop";
  progress.replaceChildren(bar, " ", text, " ", stop);
  more.replaceChildren();
  const tell = (state, told) => {
    bar.value = told.percent;
    text.textContent = `${told.records} more records read, ${already + Number(told.found)} found ${state}`;
  };
  const end = () => { source.close(); stop.remove(); };
  source.addEventListener("rows", (event) => {
    rows.insertAdjacentHTML("beforeend", event.data);
    arrived(document);
  });
  source.addEventListener("progress", (event) => tell("so far", JSON.parse(event.data)));
  source.addEventListener("done", (event) => {
    const told = JSON.parse(event.data);
    end();
    tell("in all", told.progress);
    if (told.more) {
      const link = document.createElement("a");
      link.href = told.more;
      link.rel = "next";
      link.textContent = "Search on";
      more.replaceChildren(link);
    }
  });
  source.addEventListener("error", () => { end(); text.textContent += " (the search was cut off)"; });
  stop.addEventListener("click", () => { end(); text.textContent += " (stopped)"; });
  addEventListener("pagehide", end);
}

// --- records as they come: asked for while the page is looked at, each time from where it is ------------------------

const TAIL_MS = 1000;
const TAIL_ROWS = 500;

function startTail() {
  const progress = document.querySelector("#progress[data-tail]");
  if (!progress) return;
  const rows = document.querySelector("#rows");
  const text = document.createElement("span");
  const pause = document.createElement("button");
  let next = progress.dataset.tail;
  let found = 0;
  let missed = 0;
  let isPaused = false;
  pause.type = "button";
  pause.textContent = "Pause";
  pause.setAttribute("aria-pressed", "false");
  text.textContent = "Live: waiting for records";
  progress.replaceChildren(pause, " ", text);
  const say = (words) => { if (text.textContent !== words) text.textContent = words; };
  pause.addEventListener("click", () => {
    isPaused = !isPaused;
    pause.textContent = isPaused ? "Go on" : "Pause";
    pause.setAttribute("aria-pressed", String(isPaused));
    if (isPaused) say(`Paused: ${found} records came`);
  });
  const look = async () => {
    const answer = await fetch(next);
    if (!answer.ok) throw new Error(String(answer.status));
    const told = await answer.json();
    if (isPaused) return; // asked for before it was pressed: it comes again
    next = told.next;
    found += Number(told.found);
    missed += Number(told.missed);
    rows.insertAdjacentHTML("afterbegin", told.rows);
    while (rows.children.length > TAIL_ROWS) rows.lastElementChild.remove();
    arrived(document);
    const more = [missed ? `${missed} were not shown, for they came too fast` : "", told.behind !== "0" ? `${told.behind} offsets behind` : "", ...told.problems];
    say(["Live: " + (found ? `${found} records came` : "waiting for records"), ...more.filter(Boolean)].join("; "));
  };
  const again = async () => {
    try {
      if (!isPaused && !document.hidden) await look();
    } catch (error) {
      say(`Cut off (${error.message}): asking again`);
    }
    setTimeout(again, TAIL_MS);
  };
  again();
}

// --- records that are to be sent again ------------------------------------------------------------------------------

function startChoice() {
  const choose = document.querySelector("#choose");
  if (!choose) return;
  choose.addEventListener("click", () => {
    const boxes = [...document.querySelectorAll("#rows input[name=record]")];
    const isAll = boxes.every((box) => box.checked);
    for (const box of boxes) box.checked = !isAll;
    choose.textContent = isAll ? "Choose all" : "Choose none";
  });
}

// --- the operator that a field has, while it is typed -----------------------------------------------------------------

document.addEventListener("input", (event) => {
  if (event.target.name !== "field" || !event.target.closest(".filter")) return;
  const operator = event.target.closest(".filter").querySelector("select");
  const wanted = event.target.value === "value" ? "contains" : "equals";
  if (operator.value !== "is there" && operator.value !== wanted) operator.value = wanted;
});

// --- a time range by a click: days are those of the browser's zone ----------------------------------------------------

function inZone(moment) {
  const two = (number) => String(number).padStart(2, "0");
  const ahead = -moment.getTimezoneOffset();
  const zone = `${ahead < 0 ? "-" : "+"}${two(Math.floor(Math.abs(ahead) / 60))}:${two(Math.abs(ahead) % 60)}`;
  return `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}T${two(moment.getHours())}:${two(moment.getMinutes())}${zone}`;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[name=range]");
  if (!button) return;
  button.dataset.range ||= button.value; // the value is cleared below, and a page may come back from the browser's memory
  const now = new Date();
  const day = (ago) => new Date(now.getFullYear(), now.getMonth(), now.getDate() - ago);
  const [start, end] = { hour: [new Date(now - 3600000)], today: [day(0)], yesterday: [day(1), day(0)] }[button.dataset.range];
  const fields = button.form.elements;
  fields.from.value = "time";
  fields.at.value = inZone(start);
  fields.until.value = end ? inZone(end) : "";
  button.value = "";
});

// --- keys and the theme ---------------------------------------------------------------------------------------------

const PLACES = { o: "/", t: "/topics", g: "/groups", c: "/connections", r: "/requests", x: "/transactions", l: "/cluster" };
let went = -Infinity; // when g was pressed; the clock of events begins with the page

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, select, textarea");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    const search = document.querySelector("main input[type=search]") || document.querySelector("input[type=search]");
    if (search) { event.preventDefault(); search.focus(); }
  } else if (event.key === "g" && event.timeStamp - went > 1000) {
    went = event.timeStamp;
  } else if (event.timeStamp - went < 1000 && PLACES[event.key]) {
    location.assign(PLACES[event.key]);
  }
});

function startTheme() {
  const button = document.querySelector("#theme");
  if (!button) return; // whoever has not logged in yet has no side bar
  button.addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    localStorage.setItem("ottla-theme", root.dataset.theme);
    document.dispatchEvent(new Event("ottla:theme"));
  });
}

arrived(document);
startTheme();
startCharts();
startSearch();
startTail();
startChoice();
