// SPDX-License-Identifier: Apache-2.0
#include "images/page.hpp"

namespace pawl::images {

const char* const kPageScript = R"js(
const make = (name, text, className) =>
  Object.assign(document.createElement(name), { textContent: text ?? '', className: className ?? '' });
const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
const size = (bytes) => {
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? bytes : bytes.toFixed(1)} ${units[unit]}`;
};
const parts = ['download-image', 'unpack-image', 'activate-image'];
const looks = (run) => {
  if (!run) return 'none';
  if (!run.finished) return 'busy';
  return run.state === 'done' || run.state === 'handed_off' ? 'good' : 'bad';
};
// The content security policy allows no style elements, but sheets that a script makes.
const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.images-pool{display:flex;flex-wrap:wrap;gap:.5rem 1.5rem;align-items:center;padding:12px 16px 16px}
.images-pool progress{flex:1 1 12rem;height:.75rem;accent-color:var(--accent)}
.images-pool .bad{color:var(--bad)}
.images-pipe{display:flex;gap:.25rem;min-width:14rem}
.images-part{flex:1;min-width:4rem}
.images-part i{display:block;height:.4rem;border-radius:.2rem;background:var(--line-strong);overflow:hidden}
.images-part b{display:block;height:100%;width:0;background:var(--accent-ground)}
.images-part.good b{width:100%;background:var(--good)}
.images-part.bad b{width:100%;background:var(--bad-ground)}
.images-part small{display:block;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.images-part small{max-width:9rem;color:var(--quiet)}
.images-table td.number{white-space:nowrap}
.images-where{min-width:14rem;max-width:20rem;overflow-wrap:anywhere;font-size:.85em}
@media (max-width:760px){
.images-table thead{display:none}
.images-table tr{display:grid;grid-template-columns:minmax(0,1fr) auto;gap:.5rem 1rem;padding:12px 16px}
.images-table tr{align-items:center}
.images-table tr+tr{border-top:1px solid var(--line)}
.images-table td{padding:0;border:0;min-width:0;max-width:none;height:auto}
.images-table td:is(:nth-child(2),:nth-child(5)){grid-column:1/-1}
.images-table td:last-child{grid-area:1/2}
.images-table td:nth-child(4):not(:empty)::after{content:" files"}
.images-part{min-width:0}}`);

const pipe = (image, host) => {
  const box = make('div', '', 'images-pipe');
  for (const name of parts) {
    const run = image.runs.find(({ flow }) => flow === name);
    const part = make('a', '', `images-part ${looks(run)}`);
    const bar = make('b');
    if (looks(run) === 'busy') bar.style.width = `${Math.round(100 * (run.progress ?? 0.05))}%`;
    const track = make('i');
    track.append(bar);
    const word = name.replace('-image', '');
    const state = run ? run.status : 'not begun';
    const busy = looks(run) === 'busy';
    part.append(track, make('small', busy ? `${run.step} ${run.progress_text}` : `${word}: ${state}`));
    const why = run?.error ? ` (${run.error})` : '';
    part.title = run ? `${word}: ${state} at ${run.step}${why}` : `${word}: not begun`;
    if (run) {
      part.href = `/runs/${name}/${encodeURIComponent(image.image_id)}`;
      part.onclick = (event) => {
        event.preventDefault();
        host.go(part.href.replace(location.origin, ''));
      };
    }
    box.append(part);
  }
  return box;
};

export default (place, host) => {
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  const pool = make('section', '', 'card flush');
  const poolHead = make('header', '', 'card-head');
  poolHead.append(make('h2', 'Pool'));
  const poolBody = make('div', '', 'images-pool');
  pool.append(poolHead, poolBody);

  const card = make('section', '', 'card flush');
  const head = make('header', '', 'card-head');
  const count = make('span', '', 'quiet number');
  head.append(make('h2', 'Images'), count);
  const table = make('table', '', 'images-table');
  const titles = make('tr');
  for (const title of ['Image', 'From download to snapshot', 'Size', 'Files', 'Where', '']) {
    titles.append(make('th', title));
  }
  const rows = make('tbody');
  table.append(make('thead'), rows);
  table.tHead.append(titles);
  const scroll = make('div', '', 'table-place');
  scroll.append(table);
  card.append(head, scroll);
  const trouble = make('p', '', 'quiet');
  trouble.setAttribute('role', 'status');
  place.append(pool, card, trouble);

  const act = (label, path, method, image) => {
    const button = make('button', label);
    button.disabled = !host.may('operator');
    if (button.disabled) button.title = 'This needs the role operator';
    button.onclick = async () => {
      button.disabled = true;
      try {
        const target = `/v1/images/${encodeURIComponent(image.image_id)}${path}`;
        await host.send(method, target, method === 'POST' ? {} : undefined);
      } catch (problem) {
        trouble.textContent = problem.message;
      }
      await look();
    };
    return button;
  };

  const showPool = (state) => {
    const part = state.bytes ? state.used / state.bytes : 0;
    const percent = Math.round(100 * part);
    const bar = Object.assign(make('progress'), { max: 1, value: part });
    bar.setAttribute('aria-label', 'How full the pool is');
    poolBody.replaceChildren(
      make('strong', state.backend),
      bar,
      make('span', `${size(state.used)} of ${size(state.bytes)} used (${percent} %)`, 'number'),
      make('span', `${state.volumes} volumes`, 'quiet number'),
      ...state.problems.map((problem) => make('span', problem, 'bad')),
    );
  };

  const showNoPool = (problem) => {
    poolBody.replaceChildren(make('span', problem.message, 'quiet'));
  };

  const showImage = (image) => {
    const row = make('tr');
    const active = image.snapshots.find((snapshot) => snapshot.active);
    const name = make('td', image.image_id, 'mono');
    name.title = image.bucket ? `s3://${image.bucket}/${image.s3_key}` : image.s3_key;
    const pipeline = make('td');
    pipeline.append(pipe(image, host));
    const actions = make('td', '', 'end');
    const [label, path] = active ? ['Deactivate', '/deactivate'] : ['Activate', '/activate'];
    actions.append(act(label, path, 'POST', image));
    row.append(
      name,
      pipeline,
      make('td', size(image.size_bytes), 'number'),
      make('td', image.unpacked ? String(image.unpacked.file_count) : '', 'number'),
      make('td', active ? active.device_path : image.activation_status, active ? 'mono images-where' : ''),
      actions,
    );
    return row;
  };

  let gone = false;
  let waiting;
  const look = async () => {
    clearTimeout(waiting);
    try {
      // Without its pool an image is shown all the same.
      const pool = host.get('/v1/image-pool').then(showPool, showNoPool);
      const list = await host.get('/v1/images');
      await pool;
      if (gone) return;
      rows.replaceChildren(...list.images.map(showImage));
      count.textContent = list.images.length === 0 ? 'None yet: pawl images process s3://bucket/key' : `${list.images.length}`;
      const busy = list.images.some((image) => image.runs.some((run) => !run.finished));
      waiting = setTimeout(look, busy ? 500 : 5000);
    } catch (problem) {
      if (gone) return;
      trouble.textContent = problem.message;
      waiting = setTimeout(look, 5000);
    }
  };
  // A run that begins or ends is shown at once. One stream for all of them: a browser has few connections.
  const flows = new Set(['process-image', ...parts, 'deactivate-image', 'remove-image']);
  host.follow({}, ({ machine }) => {
    if (!flows.has(machine)) return;
    clearTimeout(waiting);
    waiting = setTimeout(look, 100);
  });
  look();
  return () => {
    gone = true;
    clearTimeout(waiting);
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
  };
};
)js";

}  // namespace pawl::images
