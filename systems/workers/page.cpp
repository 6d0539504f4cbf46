// SPDX-License-Identifier: Apache-2.0
#include "workers/page.hpp"

namespace pawl::workers {

const char* const kPageScript = R"js(
const make = (name, text, className) =>
  Object.assign(document.createElement(name), { textContent: text ?? '', className: className ?? '' });
const put = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};
const age = (seconds) => {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} d`;
};
const clock = (at) => new Date(at).toLocaleTimeString([], { hour12: false });
const kMany = 20; // parents with more children start collapsed
const kLogLines = 200;

// The content security policy allows no style elements, but sheets that a script makes.
const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.workers-page{display:grid;grid-template-columns:minmax(0,1fr);gap:16px}
.workers-page [hidden]{display:none}
.workers{display:grid;grid-template-columns:minmax(0,1fr);gap:16px;align-items:start}
.workers>*,.workers-detail{min-width:0}
.workers-detail{display:grid;gap:16px;grid-template-columns:minmax(0,1fr)}
@media (min-width:1000px){.workers{grid-template-columns:minmax(0,5fr) minmax(0,6fr)}}
.workers-tree{padding:4px 0;max-height:75vh;overflow:auto}
.workers-row{display:grid;grid-template-columns:20px minmax(0,1fr) auto;gap:0 8px;
  padding:7px 16px 7px 10px;cursor:pointer;border-left:3px solid transparent}
.workers-row:hover{background:var(--sunken)}
.workers-row:focus-visible{outline:2px solid var(--accent);outline-offset:-2px}
.workers-row[aria-selected=true]{background:var(--accent-soft);border-left-color:var(--accent)}
.workers-twist{color:var(--quiet);text-align:center;font-size:11px;line-height:20px;user-select:none}
.workers-name{min-width:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.workers-name small{margin-left:4px;color:var(--quiet)}
.workers-side{display:flex;gap:8px;align-items:center;white-space:nowrap}
.workers-side small{color:var(--quiet);min-width:3.2em;text-align:right;font-variant-numeric:tabular-nums}
.workers-why{grid-column:2/4;color:var(--quiet);font-size:12.5px;overflow:hidden;text-overflow:ellipsis;
  white-space:nowrap}
.workers-why.bad{color:var(--bad)}
.workers-pill{display:inline-block;padding:0 8px;border-radius:20px;font-size:11.5px;line-height:19px;
  font-weight:560;border:1px solid currentColor}
.workers-pill.stopped{color:var(--quiet)}
.workers-pill.starting,.workers-pill.stopping{color:var(--accent)}
.workers-pill.stopping{border-style:dashed}
.workers-pill.running{color:var(--good)}
.workers-pill.degraded{color:light-dark(#8a5300,#f0b357)}
.workers-pill.bad{color:var(--bad)}
.workers-facts{display:grid;grid-template-columns:auto minmax(0,1fr);gap:4px 16px;padding:12px 16px 16px;
  margin:0}
.workers-facts dt{color:var(--quiet)}
.workers-facts dd{margin:0;overflow-wrap:anywhere}
.workers-acts{display:flex;flex-wrap:wrap;gap:8px;padding:0 16px 14px}
.workers-sides{display:grid;grid-template-columns:minmax(0,1fr);gap:0}
.workers-sides>div{padding:10px 16px 14px;min-width:0}
.workers-sides>div+div{border-top:1px solid var(--line)}
@media (min-width:560px){.workers-sides{grid-template-columns:minmax(0,1fr) minmax(0,1fr)}
  .workers-sides>div+div{border-top:0;border-left:1px solid var(--line)}}
.workers-sides h3{font-size:12.5px;color:var(--quiet);margin:0 0 6px}
.workers-sides dl{display:grid;grid-template-columns:auto minmax(0,1fr);gap:2px 12px;margin:0;
  font-size:12.5px;align-items:baseline}
.workers-sides dt{color:var(--quiet)}
.workers-sides dd{margin:0;overflow-wrap:anywhere;white-space:pre-wrap}
.workers-log{margin:0;padding:10px 16px 14px;max-height:18rem;overflow:auto;font-size:12px;
  white-space:pre-wrap;overflow-wrap:anywhere}
.workers-log .bad{color:var(--bad)}
.workers-history{max-height:20rem;overflow:auto}
.workers-history td{vertical-align:top}
.workers-history .bad{color:var(--bad)}
.workers-history td:last-child{min-width:10rem;overflow-wrap:anywhere}
@media (max-width:560px){.workers-history :is(th,td):nth-child(3){display:none}}
.workers-problems{margin:0;padding:10px 16px 14px 32px}
.workers-problems li{overflow-wrap:anywhere;color:var(--bad)}
.workers-hint{padding:14px 16px}`);

const card = (title, ...more) => {
  const section = make('section', '', 'card flush');
  const head = make('header', '', 'card-head');
  head.append(make('h2', title), ...more);
  section.append(head);
  return section;
};

// A problem is more important than the reason.
const why = (worker) => (worker.health === 'good' ? worker.reason
  : `${worker.health.replace('_', ' ')}: ${worker.problem || worker.reason}`);
const marks = (worker) => [
  ...(worker.intent === 'park' ? ['parked'] : []),
  ...(worker.intent === 'remove' ? ['being removed'] : []),
  ...(worker.restarting ? ['restarting'] : []),
];

// A command is easier to read as its words than as JSON.
const words = (value) => {
  if (typeof value === 'string') return value || '""';
  const texts = Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string');
  return texts ? value.join('\n') : JSON.stringify(value);
};
const pairs = (title, value) => {
  const side = make('div');
  const list = make('dl');
  const known = value && typeof value === 'object' ? Object.entries(value) : [];
  for (const [key, one] of known) {
    list.append(make('dt', key), make('dd', words(one), 'mono'));
  }
  side.append(make('h3', title),
    known.length > 0 ? list : make('p', value === null ? 'Unknown' : 'Empty', 'quiet'));
  return side;
};

export default (place, host) => {
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  const trouble = make('p', '', 'quiet');
  trouble.setAttribute('role', 'status');
  const count = make('span', '', 'quiet number');
  const treeCard = card('Tree', count);
  const tree = make('div', '', 'workers-tree');
  tree.setAttribute('role', 'tree');
  tree.setAttribute('aria-label', 'Workers');
  treeCard.append(tree);
  const problemCard = card('Mistakes in the worker file');
  const problemList = make('ul', '', 'workers-problems');
  problemCard.append(problemList);
  problemCard.hidden = true;
  const detail = make('div', '', 'workers-detail');
  const columns = make('div', '', 'workers');
  columns.append(treeCard, detail);
  const whole = make('div', '', 'workers-page');
  whole.append(problemCard, columns, trouble);
  place.append(whole);

  let gone = false;
  let waiting;
  let workers = [];
  let selected = new URLSearchParams(location.search).get('worker') ?? '';
  const rows = new Map();
  const collapsed = new Set();
  const seen = new Set();

  // The tree.
  const isHidden = (worker, byPath) => {
    for (let parent = byPath.get(worker.parent); parent; parent = byPath.get(parent.parent)) {
      if (collapsed.has(parent.path)) return true;
    }
    return false;
  };
  const shownRows = () => [...tree.children].filter((row) => !row.hidden);
  const focusOn = (row) => {
    for (const other of rows.values()) other.element.tabIndex = -1;
    row.tabIndex = 0;
    row.focus();
  };
  const select = (path) => {
    selected = path;
    draw();
    refresh();
  };
  const toggle = (path, close) => {
    if (close) collapsed.add(path);
    else collapsed.delete(path);
    draw();
  };
  const onKey = (event, path) => {
    const shown = shownRows();
    const at = shown.indexOf(event.currentTarget);
    const worker = workers.find((one) => one.path === path);
    const open = worker.children > 0 && !collapsed.has(path);
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1 };
    if (event.key in moves) {
      const next = shown[moves[event.key]];
      if (next) focusOn(next);
    } else if (event.key === 'ArrowRight') {
      if (worker.children > 0 && !open) toggle(path, false);
      else if (open && shown[at + 1]) focusOn(shown[at + 1]);
    } else if (event.key === 'ArrowLeft') {
      if (open) toggle(path, true);
      else if (rows.has(worker.parent)) focusOn(rows.get(worker.parent).element);
    } else if (event.key === 'Enter' || event.key === ' ') {
      select(path);
    } else {
      return;
    }
    event.preventDefault();
  };
  const makeRow = (path) => {
    const element = make('div', '', 'workers-row');
    element.setAttribute('role', 'treeitem');
    element.tabIndex = -1;
    const row = { element, twist: make('span', '', 'workers-twist'), name: make('b', '', 'mono'),
      type: make('small'), pill: make('span', '', 'workers-pill'), kids: make('span', '', 'tag'),
      time: make('small'), why: make('div', '', 'workers-why') };
    row.twist.setAttribute('aria-hidden', 'true');
    const name = make('div', '', 'workers-name');
    name.append(row.name, ' ', row.type);  // two words for screen readers
    const side = make('div', '', 'workers-side');
    side.append(row.kids, row.pill, row.time);
    element.append(row.twist, name, side, row.why);
    element.onclick = () => {
      focusOn(element);
      select(path);
    };
    row.twist.onclick = (event) => {
      event.stopPropagation();
      toggle(path, !collapsed.has(path));
    };
    element.onkeydown = (event) => onKey(event, path);
    return row;
  };
  const drawRow = (worker, depth) => {
    const row = rows.get(worker.path);
    const { element } = row;
    const open = !collapsed.has(worker.path);
    element.style.paddingLeft = `${10 + 18 * depth}px`;
    element.setAttribute('aria-level', depth + 1);
    element.setAttribute('aria-selected', String(worker.path === selected));
    if (worker.children > 0) element.setAttribute('aria-expanded', String(open));
    else element.removeAttribute('aria-expanded');
    put(row.twist, worker.children > 0 ? (open ? '\u25be' : '\u25b8') : '');
    put(row.name, worker.name);
    put(row.type, [worker.type, ...marks(worker)].join(' \u00b7 '));
    put(row.pill, worker.state);
    row.pill.className = `workers-pill ${worker.phase}`;
    row.kids.hidden = worker.children === 0;
    put(row.kids, `${worker.children_healthy}/${worker.children}`);
    row.kids.title = `${worker.children_healthy} of ${worker.children} children are healthy`;
    put(row.time, age(worker.in_state_seconds));
    put(row.why, why(worker));
    row.why.title = why(worker);
    row.why.className = `workers-why ${worker.health === 'good' ? '' : 'bad'}`;
  };
  const draw = () => {
    const byPath = new Map(workers.map((worker) => [worker.path, worker]));
    for (const [path, row] of rows) {
      if (byPath.has(path)) continue;
      row.element.remove();
      rows.delete(path);
    }
    workers.forEach((worker, index) => {
      if (!seen.has(worker.path)) {
        seen.add(worker.path);
        if (worker.children > kMany) collapsed.add(worker.path);
      }
      if (!rows.has(worker.path)) rows.set(worker.path, makeRow(worker.path));
      const { element } = rows.get(worker.path);
      element.hidden = isHidden(worker, byPath);
      if (tree.children[index] !== element) tree.insertBefore(element, tree.children[index] ?? null);
      drawRow(worker, worker.path.split('/').length - 1);
    });
    if (!tree.querySelector('[tabindex="0"]') && tree.firstElementChild) tree.firstElementChild.tabIndex = 0;
  };

  // One worker.
  const title = make('h2', '', 'mono');
  const pill = make('span', '', 'workers-pill');
  const about = make('section', '', 'card flush');
  const aboutHead = make('header', '', 'card-head');
  aboutHead.append(title, pill);
  const facts = make('dl', '', 'workers-facts');
  const acts = make('div', '', 'workers-acts');
  about.append(aboutHead, facts, acts);
  const sidesCard = card('Desired and observed');
  const sides = make('div', '', 'workers-sides');
  sidesCard.append(sides);
  const logCard = card('Output');
  const log = make('pre', '', 'workers-log mono');
  log.tabIndex = 0;
  logCard.append(log);
  const historyCard = card('History');
  const historyPlace = make('div', '', 'table-place workers-history');
  historyPlace.tabIndex = 0;
  const table = make('table');
  const titles = make('tr');
  for (const text of ['Time', 'Event', 'State', 'Reason']) titles.append(make('th', text));
  const events = make('tbody');
  table.append(make('thead'), events);
  table.tHead.append(titles);
  historyPlace.append(table);
  historyCard.append(historyPlace);

  const act = (label, verb, hint) => {
    const button = make('button', label);
    button.disabled = !host.may('operator');
    button.title = button.disabled ? 'Requires the role operator' : hint;
    button.onclick = async () => {
      trouble.textContent = '';
      try {
        await host.send('POST', `/v1/workers/${encodeURIComponent(selected)}/${verb}`, {});
      } catch (problem) {
        trouble.textContent = problem.detail ?? problem.message;
      }
      refresh();
    };
    return button;
  };
  const parkButton = act('Park', 'park', 'Stop the worker and keep it stopped');
  const runButton = act('Run', 'run', 'Run the worker');
  acts.append(parkButton, runButton, act('Restart', 'restart', 'Stop the worker and start a new instance'));

  // A process may print anything, also its environment.
  const showsLog = (one) => one.has_logs && host.may('operator');
  const drawFacts = ({ worker }) => {
    const lines = [
      ['Type', worker.type],
      ['Reason', worker.reason],
      ['In this state', age(worker.in_state_seconds)],
      ['Health', worker.health.replace('_', ' ')],
      ['Intent', [worker.intent, ...(worker.restarting ? ['restarting'] : [])].join(', ')],
      ...(worker.problem ? [['Problem', worker.problem]] : []),
      ...(worker.action ? [['Action', worker.action]] : []),
      ...(worker.failures > 0 ? [['Failures', `${worker.failures} in a row`]] : []),
      ...(worker.next_try_seconds === undefined ? [] : [['Next try', `in ${age(worker.next_try_seconds)}`]]),
      ...(worker.observed_seconds_ago === undefined ? []
        : [['Observed', `${age(worker.observed_seconds_ago)} ago`]]),
      ...(worker.children > 0
        ? [['Children', `${worker.children_healthy} of ${worker.children} healthy`]] : []),
      ['Instance', `${worker.incarnation}, ${worker.transitions} transitions since the server started`],
    ];
    facts.replaceChildren(...lines.flatMap(([name, value]) => [make('dt', name), make('dd', value)]));
  };
  const drawDetail = (one) => {
    const { worker } = one;
    put(title, worker.path);
    put(pill, worker.state);
    pill.className = `workers-pill ${worker.phase}`;
    parkButton.hidden = worker.intent === 'park';
    runButton.hidden = worker.intent !== 'park';
    drawFacts(one);
    sides.replaceChildren(pairs(`Desired, version ${one.desired_version}`, one.desired),
      pairs('Observed', one.observed));
    events.replaceChildren(
      ...one.history.map((event) => {
        const row = make('tr');
        row.append(
          make('td', clock(event.at), 'number'),
          make('td', [event.event, event.action].filter(Boolean).join(' ')),
          make('td', event.state),
          make('td', event.error || event.reason, event.error ? 'bad' : 'quiet'),
        );
        return row;
      }),
    );
    if (!about.isConnected) detail.replaceChildren(about, sidesCard, logCard, historyCard);
    logCard.hidden = !showsLog(one);
  };
  const drawLog = ({ lines }) => {
    const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
    log.replaceChildren(...lines.map((line) =>
      make('span', `${clock(line.at)}  ${line.text}\n`, line.error ? 'bad' : '')));
    if (lines.length === 0) log.textContent = 'No output yet.';
    if (atEnd) log.scrollTop = log.scrollHeight;
  };
  const refreshSelected = async () => {
    const path = selected;
    if (!workers.some((worker) => worker.path === path)) {
      const text = workers.length === 0 ? 'No workers yet. Create them with: pawl workers apply FILE'
        : 'Select a worker to see its desired and observed state and its history.';
      detail.replaceChildren(make('p', text, 'card quiet workers-hint'));
      return;
    }
    const target = `/v1/workers/${encodeURIComponent(path)}`;
    const one = await host.get(target);
    if (gone || path !== selected) return;
    drawDetail(one);
    if (!showsLog(one)) return;
    const lines = await host.get(`${target}/logs?lines=${kLogLines}`);
    if (!gone && path === selected) drawLog(lines);
  };

  // One refresh at a time; a request meanwhile is done after it.
  let refreshing = false;
  let again = false;
  const refresh = async () => {
    if (refreshing) {
      again = true;
      return;
    }
    clearTimeout(waiting);
    refreshing = true;
    try {
      const list = await host.get('/v1/workers');
      if (gone) return;
      workers = list.workers;
      if (!workers.some((worker) => worker.path === selected)) selected = workers[0]?.path ?? '';
      const healthy = workers.filter((worker) =>
        worker.phase === 'running' && worker.health === 'good').length;
      put(count, `${healthy} of ${list.total} healthy`);
      count.title = list.file ? `${list.file}, version ${list.version}` : `version ${list.version}`;
      problemCard.hidden = list.problems.length === 0;
      problemList.replaceChildren(...list.problems.map(({ text }) => make('li', text, 'mono')));
      draw();
      await refreshSelected();
    } catch (problem) {
      if (!gone && problem.code !== 'unknown_instance')
        trouble.textContent = problem.detail ?? problem.message;
    } finally {
      refreshing = false;
      if (!gone) waiting = setTimeout(refresh, again ? 100 : 1000);
      again = false;
    }
  };
  host.follow({}, ({ machine }) => {
    if (!machine?.startsWith('worker_') || refreshing) return;
    clearTimeout(waiting);
    waiting = setTimeout(refresh, 100);
  });
  refresh();
  return () => {
    gone = true;
    clearTimeout(waiting);
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
  };
};
)js";

}  // namespace pawl::workers
