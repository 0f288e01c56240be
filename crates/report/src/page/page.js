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
const isMore = (one) => one.dataset.more !== undefined;
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
const compare = () => {
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
  for (const one of sections)
    one.hidden = state.measure === '' ? isMore(one) : !['all', one.dataset.measure].includes(state.measure);
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
if (!['all', ...measures].includes(state.measure)) state.measure = '';
if (measures.length > 1) {
  const label = add('label', 'Measure ', sections[0]);
  const select = document.createElement('select');
  const called = (name) => (name === 'cpu' ? 'CPU' : name);
  const usual = new Set(sections.filter((one) => !isMore(one)).map((one) => called(one.dataset.measure)));
  select.append(new Option([...usual].join(' and '), ''));
  for (const name of [...measures, ...(sections.some(isMore) ? ['all'] : [])])
    select.append(new Option(called(name), name));
  select.value = state.measure;
  select.addEventListener('change', () => {
    state.measure = select.value;
    choose();
  });
  label.append(select);
}
const first = document.querySelector('table.sorted');
const possible = bases.length ? bases[0].targets.slice(0, bases[0].cells.length) : [];
if (!possible.includes(state.base)) state.base = '';
if (possible.length) {
  const label = add('label', 'In tables compare with ', first.closest('div.scroll'));
  const select = document.createElement('select');
  select.append(new Option('the best', ''));
  for (const name of possible) select.append(new Option(name, name));
  select.value = state.base;
  select.addEventListener('change', () => {
    state.base = select.value;
    choose();
  });
  label.append(select);
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
