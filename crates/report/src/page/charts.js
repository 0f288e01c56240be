for (const figure of document.querySelectorAll('figure')) {
  const svg = figure.querySelector('svg');
  const heads = [...figure.querySelectorAll('th[data-walk]')];
  if (!svg || !heads.length) continue;
  const names = [...heads[0].closest('table').tHead.rows[0].cells].map((one) => one.textContent);
  const guide = document.createElementNS(svg.namespaceURI, 'path');
  guide.setAttribute('class', 'guide');
  const said = document.createElement('p');
  said.setAttribute('role', 'status');
  const around = svg.closest('div.scroll');
  around.after(said);
  // One stop a chart; what scrolls it is inside.
  around.removeAttribute('tabindex');
  svg.setAttribute('tabindex', '0');
  // Readers of screens leave arrow keys to nothing else.
  svg.setAttribute('role', 'application');
  let place = -1;
  const show = () => {
    const [head, ...cells] = heads[place].parentNode.cells;
    const told = cells.map((cell, at) => cell.textContent && names[at + 1] + ': ' + cell.textContent);
    said.textContent = [head.textContent, ...told.filter((one) => one)].join('; ');
    guide.setAttribute('d', head.dataset.walk);
    svg.append(guide);
    guide.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  };
  svg.addEventListener('focus', () => {
    if (place < 0) said.textContent = heads.length + ' points, ' + names[0] + ': arrow keys, left and right';
    else show();
  });
  svg.addEventListener('blur', () => {
    guide.remove();
    said.textContent = '';
  });
  svg.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    place = Math.max(0, Math.min(place + step, heads.length - 1));
    show();
  });
}
