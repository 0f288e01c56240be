for (const table of document.querySelectorAll('table.sorted')) {
  const heads = table.tHead ? [...table.tHead.rows[0].cells] : [];
  heads.forEach((head, place) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener('click', () => {
      const up = head.getAttribute('aria-sort') !== 'ascending';
      for (const other of heads) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
      const key = (row) => {
        const cell = row.cells[place];
        return cell && cell.dataset.v !== undefined ? Number(cell.dataset.v) : null;
      };
      const text = (row) => (row.cells[place] ? row.cells[place].textContent : '');
      for (const body of table.tBodies) {
        const rows = [...body.querySelectorAll('tr.row')];
        rows.sort((one, other) => {
          const a = key(one),
            b = key(other);
          if (a !== null && b !== null) return up ? a - b : b - a;
          if (a !== null || b !== null) return a !== null ? -1 : 1;
          return up ? text(one).localeCompare(text(other)) : text(other).localeCompare(text(one));
        });
        body.append(...rows);
      }
    });
  });
}
const add = (name, words, before) => {
  const one = document.createElement(name);
  one.append(words);
  before.before(one);
  return one;
};
const state = { measure: '', base: '', filter: '' };
const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
};
for (const part of location.hash.slice(1).split(',')) {
  const [name, value] = part.split('=').map(decoded);
  if (value === undefined) state.measure = name;
  else if (name === 'filter' || name === 'base') state[name] = value;
}
const sections = [...document.querySelectorAll('section[data-measure]')];
const measures = [...new Set(sections.map((one) => one.dataset.measure))];
const tabs = [];
const embedded = document.getElementById('bases');
const bases = embedded ? JSON.parse(embedded.textContent) : [];
const columns = [];
for (const table of document.querySelectorAll('table.sorted'))
  for (const base of bases) {
    const head = table.tHead && [...table.tHead.rows[0].cells].find((one) => one.textContent === base.heading);
    if (!head) continue;
    const rows = [...table.querySelectorAll('tr.row')].map((row) => {
      const cell = row.cells[head.cellIndex];
      return { cell, best: cell.textContent, place: base.targets.indexOf(row.cells[0].textContent) };
    });
    columns.push({ head, base, rows });
  }
const ratios = [];
for (const base of bases)
  for (const row of document.querySelectorAll(`section[data-measure="${base.measure}"] g[data-row]`)) {
    const texts = [...row.querySelectorAll('.ratio text')];
    const place = base.targets.indexOf(row.dataset.row);
    if (place >= 0 && texts.length) ratios.push({ texts, best: texts.map((one) => one.textContent), base, place });
  }
const compare = () => {
  for (const { texts, best, base, place } of ratios) {
    const [ratio] = (base.cells[base.targets.indexOf(state.base)]?.[place] ?? '-').split(', ');
    const [number, interval] = ratio.split(' [');
    const chosen = [number, interval ? '[' + interval : ''];
    texts.forEach((one, at) => (one.textContent = base.targets.includes(state.base) ? chosen[at] : best[at]));
  }
  for (const { head, base, rows } of columns) {
    const place = base.targets.indexOf(state.base);
    const text = place < 0 ? base.heading : base.before + ' ' + state.base;
    const button = head.querySelector('button');
    if (button.textContent === text) continue;
    button.textContent = text;
    head.removeAttribute('aria-sort');
    for (const row of rows) {
      row.cell.textContent = place < 0 ? row.best : (base.cells[place][row.place] ?? '-');
      const key = Number.parseFloat(row.cell.textContent.replace('about ', ''));
      if (Number.isNaN(key)) delete row.cell.dataset.v;
      else row.cell.dataset.v = key;
    }
  }
};
const apply = () => {
  compare();
  for (const one of sections) one.hidden = one.dataset.measure !== (state.measure || measures[0]);
  for (const one of tabs) one.setAttribute('aria-pressed', one.value === (state.measure || measures[0]));
  const words = state.filter.toLowerCase();
  for (const row of document.querySelectorAll('tr.row'))
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(words);
};
const choose = () => {
  const named = ['base', 'filter'].map((name) => state[name] && name + '=' + encodeURIComponent(state[name]));
  const told = [state.measure, ...named].filter((one) => one);
  history.replaceState(null, '', told.length ? '#' + told.join(',') : location.pathname + location.search);
  apply();
};
if (!measures.includes(state.measure)) state.measure = '';
if (measures.length > 1) {
  const bar = document.createElement('div');
  bar.className = 'tabs';
  for (const name of measures) {
    const tab = document.createElement('button');
    tab.type = 'button';
    tab.value = name;
    tab.textContent = name === 'cpu' ? 'CPU' : name;
    tab.addEventListener('click', () => {
      state.measure = name === measures[0] ? '' : name;
      choose();
    });
    tabs.push(tab);
    bar.append(tab);
  }
  sections[0].before(bar);
}
const first = document.querySelector('table.sorted');
const possible = bases.length ? bases[0].targets.slice(0, bases[0].cells.length) : [];
if (!possible.includes(state.base)) state.base = '';
if (possible.length) {
  const label = add('label', 'Compare with ', first.closest('div.scroll'));
  const select = document.createElement('select');
  select.append(new Option('the best', ''));
  for (const name of possible) select.append(new Option(name, name));
  select.value = state.base;
  select.addEventListener('change', () => {
    state.base = select.value;
    choose();
  });
  label.append(select);
  for (const cell of first.querySelectorAll('tr.row th')) {
    if (!possible.includes(cell.textContent)) continue;
    const button = document.createElement('button');
    button.type = 'button';
    button.title = 'compare with this target';
    button.append(...cell.childNodes);
    cell.append(button);
    button.addEventListener('click', () => {
      state.base = state.base === cell.textContent ? '' : cell.textContent;
      select.value = state.base;
      choose();
    });
  }
}
if (first && first.querySelectorAll('tr.row').length > 3) {
  const label = add('label', 'Filter targets ', first.closest('div.scroll'));
  const input = document.createElement('input');
  input.type = 'search';
  input.value = state.filter;
  input.addEventListener('input', () => {
    state.filter = input.value;
    choose();
  });
  label.append(input);
} else state.filter = '';
apply();
for (const code of document.querySelectorAll('code.command')) {
  if (!navigator.clipboard) break;
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Copy';
  button.addEventListener('click', () =>
    navigator.clipboard.writeText(code.textContent).then(
      () => {
        button.textContent = 'Copied';
      },
      () => {
        button.textContent = 'Not allowed';
      },
    ),
  );
  code.after(' ', button);
}
const manifest = document.getElementById('manifest');
const again = document.querySelector('p.again');
if (manifest && again) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'Download JSON';
  button.addEventListener('click', () => {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([manifest.textContent], { type: 'application/json' }));
    link.download = 'kvfair.json';
    link.click();
  });
  again.append(' ', button);
}
const ROWS = 200;
const unpack = async (table) => {
  const bytes = Uint8Array.from(atob(table.dataset.rows), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  const rows = (await new Response(stream).text()).split('\n').slice(0, -1);
  const bar = document.createElement('p');
  const said = document.createElement('span');
  said.setAttribute('role', 'status');
  let from = 0;
  const show = (step) => {
    from = Math.max(0, Math.min(from + step, ROWS * Math.floor((rows.length - 1) / ROWS)));
    table.tBodies[0].innerHTML = rows.slice(from, from + ROWS).join('');
    said.textContent =
      ' Rows ' + (from + 1) + ' to ' + Math.min(from + ROWS, rows.length) + ' of ' + rows.length + ' ';
  };
  for (const [words, step] of [
    ['Before', -ROWS],
    ['Next', ROWS],
  ]) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = words;
    button.addEventListener('click', () => show(step));
    bar.append(button);
    if (step < 0) bar.append(said);
  }
  table.closest('div.scroll').before(bar);
  show(0);
};
for (const table of document.querySelectorAll('table[data-rows]')) {
  if (typeof DecompressionStream === 'undefined') break;
  table.closest('details').addEventListener('toggle', () => unpack(table), { once: true });
}
