const table = document.querySelector('table');
const rows = [...table.tBodies[0].rows];
const filters = [
  ['job', 1],
  ['store', 2],
  ['machine', 3],
];
const chosen = {};
const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
};
for (const part of location.hash.slice(1).split(',')) {
  const [name, value] = part.split('=').map(decoded);
  if (filters.some(([known]) => known === name)) chosen[name] = value;
}
const values = (row, place) => {
  const text = row.cells[place].textContent;
  return place === 2 ? text.split(', ') : [text];
};
const bar = document.createElement('p');
const said = document.createElement('span');
said.setAttribute('role', 'status');
const apply = () => {
  let shown = 0;
  for (const row of rows) {
    row.hidden = filters.some(([name, place]) => chosen[name] && !values(row, place).includes(chosen[name]));
    if (!row.hidden) shown += 1;
  }
  said.textContent = shown + ' of ' + rows.length + ' runs';
};
for (const [name, place] of filters) {
  const all = [...new Set(rows.flatMap((row) => values(row, place)))].filter((one) => one).sort();
  if (!all.includes(chosen[name])) chosen[name] = '';
  const label = document.createElement('label');
  const select = document.createElement('select');
  select.append(new Option('all', ''));
  for (const one of all) select.append(new Option(one, one));
  select.value = chosen[name];
  select.addEventListener('change', () => {
    chosen[name] = select.value;
    const told = filters.map(([of]) => chosen[of] && of + '=' + encodeURIComponent(chosen[of])).filter((one) => one);
    history.replaceState(null, '', told.length ? '#' + told.join(',') : location.pathname + location.search);
    apply();
  });
  label.append(name + ' ', select);
  bar.append(label, ' ');
}
bar.append(said);
table.parentNode.before(bar);
apply();
