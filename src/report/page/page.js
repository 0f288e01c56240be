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
const state = { measure: '', filter: '' };
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
  else if (name === 'filter') state.filter = value;
}
const sections = [...document.querySelectorAll('section[data-measure]')];
const measures = [...new Set(sections.map((one) => one.dataset.measure))];
const apply = () => {
  for (const one of sections) one.hidden = state.measure !== '' && one.dataset.measure !== state.measure;
  const words = state.filter.toLowerCase();
  for (const row of document.querySelectorAll('tr.row'))
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(words);
};
const choose = () => {
  const told = [state.measure, state.filter && 'filter=' + encodeURIComponent(state.filter)].filter(
    (one) => one,
  );
  history.replaceState(null, '', told.length ? '#' + told.join(',') : location.pathname + location.search);
  apply();
};
if (!measures.includes(state.measure)) state.measure = '';
if (measures.length > 1) {
  const label = add('label', 'Measure ', sections[0]);
  const select = document.createElement('select');
  for (const name of ['', ...measures])
    select.append(new Option(name === 'cpu' ? 'CPU' : name || 'all', name, false, name === state.measure));
  select.addEventListener('change', () => {
    state.measure = select.value;
    choose();
  });
  label.append(select);
}
const first = document.querySelector('table.sorted');
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
